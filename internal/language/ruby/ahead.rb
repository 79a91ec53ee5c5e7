# Loaded by Ruby itself before the program when that is not known yet: it waits for the request on
# descriptor 3 and becomes its program.
before = @before@
if before.empty?
  ENV.delete("RUBYOPT")
else
  ENV["RUBYOPT"] = before
end
begin
  requests = IO.for_fd(3, "r")
  events = IO.for_fd(4, "w")
  events.syswrite("{\"event\":\"ready\"}\n")
  # This JSON is Ruby. Its library takes long to load, and the program would find it loaded.
  request = eval(requests.gets.force_encoding("UTF-8"))
  exit!(1) if request[:code].start_with?("#!") # Ruby has looked for its options there already
  Dir.chdir(request[:dir]) if request[:dir] != Dir.pwd
  request.fetch(:env, {}).each { |name, value| ENV[name.to_s] = value }
  ARGV.concat(request.fetch(:args, []))
  File.binwrite(request[:file], request[:code])
  File.binwrite(request[:touch], "x")
  # Ruby has opened the file and looked at its first byte.
  ObjectSpace.each_object(File) { |file| file.rewind if !file.closed? && file.path == request[:file] }
  requests.close
  events.syswrite("{\"event\":\"begun\"}\n")
  events.close
rescue Exception
  exit!(1) # the code is run in another interpreter
end
