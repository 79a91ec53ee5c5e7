# frozen_string_literal: true

# The driver of Ruby kernels: requests on descriptor 3, replies on 4.
module LLMSandboxKernel
  LONGEST = 1 << 20
  REQUESTS = IO.for_fd(3, 'rb')
  REPLIES = IO.for_fd(4, 'wb')
  REQUESTS.close_on_exec = REPLIES.close_on_exec = true
  REPLIES.sync = true
  STDOUT.sync = STDERR.sync = true
  OUT = STDOUT.dup
  ERR = STDERR.dup
  OUT.sync = ERR.sync = true
  ME = __FILE__

  class << self
    attr_reader :cell

    def json(v)
      case v
      when Hash then "{#{v.map { |k, x| "#{json(k.to_s)}:#{json(x)}" }.join(',')}}"
      when Array then "[#{v.map { |x| json(x) }.join(',')}]"
      when Integer, true, false then v.to_s
      when nil then 'null'
      else
        text = v.to_s.dup
        text = text.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8 || !text.ascii_only? && text.encoding != Encoding::BINARY
        text = text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
        %("#{text.gsub(/["\\\x00-\x1f\u2028\u2029]/) { |c| format('\\u%04x', c.ord) }}")
      end
    end

    def send_event(event)
      REPLIES.write("#{json(event)}\n")
    end

    def field(line, name)
      case line
      when /"#{name}":"([^"\\]*)"/ then $1
      when /"#{name}":(-?\d+|true|false)/ then $1
      end
    end

    def text(line, name)
      (field(line, "#{name}64") || '').unpack1('m').force_encoding(Encoding::UTF_8).scrub
    end

    def cut(text, most = LONGEST)
      text.length > most ? "#{text[0, most]}… (cut)" : text
    end

    def show(value)
      cut(value.inspect)
    rescue StandardError => e
      "#<#{Kernel.instance_method(:class).bind_call(value)} (inspect failed: #{e.class})>"
    end

    # ask asks for a line of input; nil is its end.
    def ask(prompt, password: false)
      return nil unless @cell && @cell[:stdin]

      send_event(event: 'input', id: @cell[:id], prompt: prompt, password: password)
      loop do
        line = REQUESTS.gets or exit!(0)
        next unless field(line, 'op') == 'input' && field(line, 'id').to_i == @cell[:id]

        return field(line, 'eof') == 'true' ? nil : "#{text(line, 'text')}\n"
      end
    end

    # restart gives cells a binding, which is all that a reset takes away but for globals,
    # methods and constants that cells made.
    def restart
      if @binding
        (TOPLEVEL_BINDING.receiver.class.private_instance_methods(false) - @methods).each { |m| Object.send(:remove_method, m) }
        (Object.constants - @constants).each { |c| Object.send(:remove_const, c) }
        (global_variables - @globals).each { |g| eval("#{g} = nil", TOPLEVEL_BINDING) }
      end
      @count = 0
      @binding = TOPLEVEL_BINDING.dup
      @methods = Object.private_instance_methods(false)
      @constants = Object.constants
      @globals = global_variables
    end

    def trace(error, name)
      frames = (error.backtrace || []).reject { |f| f.start_with?(ME) || f.start_with?('<internal:kernel>') }
      frames = frames.map { |f| f.sub(/in `eval'\z/, "in `<main>'") }
      text = "#{frames.first || name}: #{error.message} (#{error.class})"
      frames.drop(1).each { |f| text += "\n\tfrom #{f}" }
      cause = error.cause
      cause ? "#{text}\n#{trace(cause, name)}" : text
    end

    def run(line)
      @count += 1
      name = "cell[#{@count}]"
      @cell = { id: field(line, 'id').to_i, mark: field(line, 'mark'), stdin: field(line, 'stdin') == 'true', count: @count }
      code = text(line, 'code')
      done = { status: 'ok' }
      begin
        value = nil
        shown = nil
        Thread.handle_interrupt(Interrupt => :immediate) do
          value = @binding.eval(code, name, 1)
          shown = show(value) unless value.nil?
        end
        done[:value] = { 'text/plain' => shown } unless value.nil?
      rescue SystemExit => e
        return leave(e.status)
      rescue Interrupt
        done = { status: 'interrupted', error: { name: 'Interrupt', message: 'the cell was interrupted', traceback: '' } }
      rescue Exception => e # whatever a cell raises
        done = { status: 'error', error: failure(e, name) }
      end
      finish(done)
    end

    def failure(error, name)
      message = cut(error.message.to_s, 100_000)
      { name: error.class.to_s, message: message, traceback: error.is_a?(SyntaxError) ? message : cut(trace(error, name), 100_000) }
    rescue Exception # a message or backtrace of the cell's own making
      { name: error.class.to_s, message: '', traceback: '' }
    end

    def finish(done)
      [[$stdout, OUT], [$stderr, ERR]].each do |now, original|
        now.flush if now.respond_to?(:flush)
        original.write("\0#{@cell[:mark]}")
      end
      cell = @cell
      @cell = nil
      send_event({ event: 'done', id: cell[:id], count: cell[:count] }.merge(done))
    end

    # leave ends the process as the cell asked, after its at_exit blocks.
    def leave(status)
      @leaving = true
      done = { status: 'exit', exit_code: status }
      (@at_exit || []).reverse_each do |block|
        block.call
      rescue SystemExit => e
        done[:exit_code] = e.status
      rescue Exception => e
        ERR.puts(trace(e, 'at_exit'))
      end
      finish(done)
      exit!(done[:exit_code])
    end

    def at_exit_block(block)
      (@at_exit ||= []) << block
      block
    end

    WORD = /[[:alpha:]_][[:alnum:]_]*[?!]?/
    KEYWORDS = %w[BEGIN END alias and begin break case class def defined? do else elsif end ensure false for if in module
                  next nil not or redo rescue retry return self super then true undef unless until when while yield].freeze

    # peek finds a plain chain of names without a call that is not a reader of a constant
    # or variable.
    def peek(chain)
      return nil unless chain =~ /\A(?:@@?|\$)?[[:alpha:]_][[:alnum:]_]*(?:::[[:upper:]][[:alnum:]_]*)*\z/
      return nil if chain =~ /\A[[:lower:]_]/ && !@binding.local_variable_defined?(chain.to_sym)

      [@binding.eval(chain)]
    rescue NameError, ArgumentError
      nil
    end

    def complete(code, cursor)
      before = code[0, cursor]
      word = before[/(?:@@?|\$)?(?:[[:alpha:]_][[:alnum:]_]*)?[?!]?\z/] || ''
      chain = before[0, before.length - word.length]
      names =
        if chain =~ /((?:@@?|\$)?[[:alpha:]_][\w:]*)(\.|&\.|::)\z/
          got = peek($1)
          if got.nil? then []
          elsif $2 == '::' && got[0].is_a?(Module) then got[0].constants + got[0].singleton_methods
          else Kernel.instance_method(:methods).bind_call(got[0])
          end
        else
          @binding.local_variables + global_variables + Object.constants + @binding.receiver.private_methods +
            @binding.receiver.instance_variables + KEYWORDS
        end
      names = names.map(&:to_s).select { |n| n.start_with?(word) && n =~ /\A(?:@@?|\$)?#{WORD}=?\z/ }.uniq.sort
      { matches: names.first(1000), start: cursor - word.length, end: cursor }
    end

    def inspect_at(code, cursor)
      left = code[0, cursor][/(?:@@?|\$)?[\w:]*\z/] || ''
      name = left + (code[cursor..][/\A\w*[?!]?/] || '')
      if (got = peek(name))
        return "#{name}: #{kind(got[0])}\n#{show(got[0])}"
      end
      return '' unless name =~ /\A#{WORD}\z/ && @binding.receiver.respond_to?(name, true)

      m = @binding.receiver.method(name)
      "#{name}: method(#{m.parameters.map { |k, n| { req: n.to_s, opt: "#{n} = …", rest: "*#{n}", keyreq: "#{n}:", key: "#{n}: …", keyrest: "**#{n}", block: "&#{n}" }[k] }.join(', ')}) of #{m.owner}"
    end

    def kind(value)
      Kernel.instance_method(:class).bind_call(value).to_s
    end

    def variables
      list = @binding.local_variables.sort.map { |n| [n, @binding.local_variable_get(n)] }
      list += @binding.receiver.instance_variables.map { |n| [n, @binding.receiver.instance_variable_get(n)] }
      list += (global_variables - @globals).map { |n| [n, eval(n.to_s)] }.reject { |_, v| v.nil? }
      list.map { |n, v| { name: n, type: kind(v), value: cut(show(v), 200) } }
    end

    def serve(line)
      op = field(line, 'op')
      return run(line) if op == 'run'

      cursor = field(line, 'cursor').to_i
      reply = { event: 'reply', id: field(line, 'id').to_i }
      begin
        case op
        when 'complete' then reply.merge!(complete(text(line, 'code'), cursor))
        when 'inspect' then reply[:text] = cut(inspect_at(text(line, 'code'), cursor), 100_000)
        when 'variables' then reply[:variables] = variables
        when 'reset' then restart
        when 'input' then return # of a cell that is over
        else reply[:error] = "unknown request #{op}"
        end
      rescue StandardError => e
        reply[:error] = "#{e.class}: #{e.message}"
      end
      send_event(reply)
    end

    def main
      restart
      send_event(event: 'ready', language: 'ruby', version: RUBY_VERSION, flavor: RUBY_ENGINE)
      # An interrupt belongs to the cell that runs; between cells there is nothing to end.
      Thread.handle_interrupt(Interrupt => :never) do
        while (line = REQUESTS.gets)
          serve(line)
          begin
            Thread.handle_interrupt(Interrupt => :immediate) { Thread.pass if Thread.pending_interrupt? }
          rescue Interrupt
            nil
          end
        end
      end
      exit!(0)
    end
  end

  # Input is what a cell reads on stdin.
  Input = Object.new
  class << Input
    include Enumerable

    def gets(*args, **options)
      line = LLMSandboxKernel.ask('')
      line = line.chomp if line && options[:chomp]
      $_ = line
    end

    def readline(*args, **options)
      gets(*args, **options) || raise(EOFError, 'end of file reached')
    end

    def each_line
      return to_enum(:each_line) unless block_given?

      while (line = gets)
        yield line
      end
      self
    end
    alias each each_line

    def readlines(*_args, **options)
      options[:chomp] ? each_line.map(&:chomp) : each_line.to_a
    end

    def read(*_args)
      each_line.to_a.join
    end

    def getpass(prompt = '')
      LLMSandboxKernel.ask(prompt, password: true)&.chomp
    end

    def fileno = 0
    def tty? = false
    alias isatty tty?
    def sync = true
    def eof? = false
    def inspect = '#<IO:<STDIN>>'
  end
end

$stdin = LLMSandboxKernel::Input
module Kernel
  private

  def gets(*args, **options) = LLMSandboxKernel::Input.gets(*args, **options)
  def readline(*args, **options) = LLMSandboxKernel::Input.readline(*args, **options)
  def readlines(*args, **options) = LLMSandboxKernel::Input.readlines(*args, **options)
  def at_exit(&block) = LLMSandboxKernel.at_exit_block(block)
end
Object.send(:remove_const, :STDIN)
STDIN = $stdin
$0 = $PROGRAM_NAME = 'cell'
LLMSandboxKernel.main
