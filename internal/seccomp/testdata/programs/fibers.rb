require "socket"; require "tempfile"; require "securerandom"; require "open3"
f = Fiber.new { 3.times { |i| Fiber.yield i }; :done }
raise unless 4.times.map { f.resume } == [0, 1, 2, :done]
raise unless 8.times.map { |i| Thread.new { i * i } }.sum(&:value) == 140
out, = Open3.capture2("echo hi"); raise unless out == "hi\n"
pid = fork { exit 3 }; Process.wait pid; raise unless $?.exitstatus == 3
unless ENV["NO_SOCKETS"]
  s = TCPServer.new("127.0.0.1", 0); TCPSocket.new("127.0.0.1", s.addr[1]).close
  Socket.getifaddrs
end
UNIXSocket.pair; SecureRandom.hex; Tempfile.create("x").close
puts "works"
