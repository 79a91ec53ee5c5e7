// The driver of Java kernels: JShell in this JVM; requests on descriptor 3, replies on 4.
// A cell that exits just ends the process: its exit code is for the host to see.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;
import jdk.jshell.*;
import jdk.jshell.execution.LocalExecutionControlProvider;

public class kernel {
    static final int LONGEST = 1 << 20;
    static final String[] IMPORTS = {"java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*",
        "java.util.function.*", "java.util.regex.*", "java.util.stream.*"};
    static final String[] KEYWORDS = ("abstract assert boolean break byte case catch char class continue default do double else enum extends final "
        + "finally float for if implements import instanceof int interface long new package private protected public record return short static "
        + "super switch this throw throws try var void volatile while yield true false null").split(" ");

    static final FileDescriptor THREE = descriptor(3), FOUR = descriptor(4);
    static final OutputStream replies = new FileOutputStream(FOUR);
    static final PrintStream out = System.out, err = System.err;
    static final BlockingQueue<Map<String, String>> requests = new LinkedBlockingQueue<>();
    static final BlockingQueue<Map<String, String>> inputs = new LinkedBlockingQueue<>();

    static JShell shell;
    static volatile Cell cell;
    static volatile boolean asking; // the cell waits for input
    static int count;
    // Where the snippets of cells begin, by their ids.
    static final Map<String, int[]> origins = new HashMap<>();
    // The variables that JShell makes of a cell's expressions. Every later snippet would
    // import them, and take longer for it.
    static final List<Snippet> spent = new ArrayList<>();

    static class Cell {
        String id, mark;
        boolean stdin;
        volatile boolean interrupted;
        int count;
    }

    // descriptor is one by its number, which the library offers for the first three only.
    static FileDescriptor descriptor(int number) {
        try {
            var made = FileDescriptor.class.getDeclaredConstructor(int.class);
            made.setAccessible(true);
            return made.newInstance(number);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    // --- JSON -----------------------------------------------------------------------
    static String json(String s) {
        StringBuilder b = new StringBuilder(s.length() + 16).append('"');
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') b.append('\\').append(c);
            else if (c == '\n') b.append("\\n");
            else if (c < 32 || Character.isSurrogate(c) || c == 0x2028 || c == 0x2029) b.append(String.format("\\u%04x", (int) c));
            else b.append(c);
        }
        return b.append('"').toString();
    }

    static synchronized void send(String event) {
        try {
            replies.write((event + "\n").getBytes(StandardCharsets.UTF_8));
            replies.flush();
        } catch (IOException e) {
            Runtime.getRuntime().halt(1); // the host has closed the pipe
        }
    }

    static final Pattern FIELD = Pattern.compile("\"(\\w+)\":(?:\"([^\"\\\\]*)\"|(-?\\d+|true|false))");

    static Map<String, String> parse(String line) {
        Map<String, String> m = new HashMap<>();
        Matcher f = FIELD.matcher(line);
        while (f.find()) {
            String v = f.group(2) != null ? f.group(2) : f.group(3);
            String name = f.group(1);
            if (name.endsWith("64")) {
                name = name.substring(0, name.length() - 2);
                v = new String(Base64.getDecoder().decode(v), StandardCharsets.UTF_8);
            }
            m.put(name, v);
        }
        return m;
    }

    static String cut(String s, int most) {
        return s.length() > most ? s.substring(0, most) + "… (cut)" : s;
    }

    // --- requests, read beside the cell so that an interrupt is seen ------------------
    static void listen() {
        try (var in = new BufferedReader(new InputStreamReader(new FileInputStream(THREE), StandardCharsets.UTF_8), 1 << 16)) {
            for (String line; (line = in.readLine()) != null;) {
                Map<String, String> r = parse(line);
                switch (r.getOrDefault("op", "")) {
                    case "interrupt" -> interrupt(r.get("id"));
                    case "input" -> {
                        Cell c = cell;
                        if (c != null && c.id.equals(r.get("id"))) inputs.add(r);
                    }
                    default -> requests.add(r);
                }
            }
        } catch (IOException e) {
            err.println("kernel: " + e);
        }
        Runtime.getRuntime().halt(0);
    }

    static void interrupt(String id) {
        Cell c = cell;
        if (c == null || !c.id.equals(id)) return;
        c.interrupted = true;
        // A thread that is stopped while it waits for a queue would spoil its locks.
        if (asking) inputs.add(Map.of("eof", "true"));
        else shell.stop();
    }

    // Stopped ends a cell that was interrupted while it asked.
    static class Stopped extends Error {
        Stopped() {
            super("the cell was interrupted");
        }
    }

    // Input is the cells' System.in, which asks for a line when it has none.
    static class Input extends InputStream {
        byte[] line = {};
        int at;

        boolean fill() {
            if (at < line.length) return true;
            Cell c = cell;
            if (c == null || !c.stdin) return false;
            inputs.clear();
            try {
                asking = true;
                Map<String, String> answer = Map.of();
                if (!c.interrupted) {
                    send("{\"event\":\"input\",\"id\":" + c.id + ",\"prompt\":\"\",\"password\":false}");
                    answer = inputs.take();
                }
                if (c.interrupted) throw new Stopped();
                if ("true".equals(answer.get("eof"))) return false;
                line = (answer.getOrDefault("text", "") + "\n").getBytes(StandardCharsets.UTF_8);
                at = 0;
                return true;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return false;
            } finally {
                asking = false;
            }
        }

        @Override public synchronized int read() {
            return fill() ? line[at++] & 255 : -1;
        }

        @Override public synchronized int read(byte[] b, int from, int n) {
            if (n == 0) return 0;
            if (!fill()) return -1;
            int k = Math.min(n, line.length - at);
            System.arraycopy(line, at, b, from, k);
            at += k;
            return k;
        }

        @Override public synchronized int available() {
            return line.length - at;
        }
    }

    // --- cells ------------------------------------------------------------------------
    // classPath is the one given with the jars in its directories, which only the java and
    // javac commands look for by themselves.
    static String classPath() {
        var entries = new ArrayList<String>();
        for (String entry : System.getProperty("llmsandbox.classpath").split(File.pathSeparator)) {
            if (!entry.endsWith("/*")) {
                entries.add(entry);
                continue;
            }
            File[] jars = new File(entry.substring(0, entry.length() - 2)).listFiles((dir, name) -> name.endsWith(".jar"));
            if (jars == null) continue;
            Arrays.sort(jars);
            for (File jar : jars) entries.add(jar.getPath());
        }
        return String.join(File.pathSeparator, entries);
    }

    static void open() {
        origins.clear();
        count = 0;
        var b = JShell.builder().executionEngine(new LocalExecutionControlProvider(), Map.of())
            .in(System.in).out(System.out).err(System.err);
        shell = b.build();
        shell.addToClasspath(classPath());
        for (String name : IMPORTS) shell.eval("import " + name + ";");
    }

    static class Failure extends Exception {
        final String name, trace;

        Failure(String name, String message, String trace) {
            super(message);
            this.name = name;
            this.trace = trace;
        }
    }

    // run evaluates a cell's snippets until one fails; the result is the last one's value.
    static String run(String code) throws Failure {
        var analysis = shell.sourceCodeAnalysis();
        String rest = code, value = null;
        int offset = 0;
        while (!rest.isBlank()) {
            var info = analysis.analyzeCompletion(rest);
            boolean incomplete = switch (info.completeness()) {
                case DEFINITELY_INCOMPLETE, CONSIDERED_INCOMPLETE -> true;
                default -> false;
            };
            if (cell.interrupted) return null;
            String source = incomplete || info.source() == null ? rest : info.source();
            int skipped = 0;
            while (skipped < rest.length() && Character.isWhitespace(rest.charAt(skipped))) skipped++;
            int start = offset + skipped;
            source = source.stripLeading();
            for (SnippetEvent e : shell.eval(source)) {
                Snippet s = e.snippet();
                origins.put(s.id(), new int[] {count, lineOf(code, start)});
                if (e.causeSnippet() != null) continue; // an older one that changes with it
                if (s.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND && e.status().isActive()) spent.add(s);
                if (cell.interrupted) return null;
                if (e.exception() != null) throw failure(e.exception());
                if (e.status() == Snippet.Status.REJECTED) throw rejected(s, code, start);
                value = shown(s, e.value());
            }
            if (incomplete) break;
            offset += rest.length() - info.remaining().length();
            rest = info.remaining();
        }
        return value;
    }

    // shown is the value of an expression; declarations and assignments have none.
    static String shown(Snippet s, String value) {
        return switch (s.subKind()) {
            case TEMP_VAR_EXPRESSION_SUBKIND, VAR_VALUE_SUBKIND, OTHER_EXPRESSION_SUBKIND -> value == null || value.isEmpty() ? null : cut(value, LONGEST);
            default -> null;
        };
    }

    static int lineOf(String code, int offset) {
        return 1 + (int) code.substring(0, Math.min(Math.max(offset, 0), code.length())).chars().filter(c -> c == '\n').count();
    }

    static Failure rejected(Snippet s, String code, int start) {
        StringBuilder trace = new StringBuilder();
        String first = null;
        for (Diag d : (Iterable<Diag>) shell.diagnostics(s)::iterator) {
            if (!d.isError()) continue;
            String message = d.getMessage(Locale.ROOT);
            if (first == null) first = message;
            int line = lineOf(code, start + (int) Math.max(d.getPosition(), 0));
            trace.append("cell[").append(count).append("]:").append(line).append(": error: ").append(message).append('\n')
                .append(code.split("\n", -1)[line - 1]).append('\n');
        }
        return new Failure("CompileError", first == null ? "the code is not complete" : first, trace.toString());
    }

    static Failure failure(JShellException e) {
        if (e instanceof UnresolvedReferenceException u) {
            String names = String.join(", ", (Iterable<String>) shell.unresolvedDependencies(u.getSnippet())::iterator);
            return new Failure("UnresolvedReference", "not defined: " + names, "a declaration uses what is not defined: " + names);
        }
        EvalException v = (EvalException) e;
        return new Failure(v.getExceptionClassName(), v.getMessage() == null ? "" : v.getMessage(), trace(v));
    }

    static String trace(EvalException e) {
        StringBuilder b = new StringBuilder(e.getExceptionClassName());
        if (e.getMessage() != null) b.append(": ").append(e.getMessage());
        for (StackTraceElement f : e.getStackTrace()) {
            String file = f.getFileName();
            b.append("\n\tat ");
            if (file == null || !file.startsWith("#")) {
                b.append(f);
                continue;
            }
            int[] origin = origins.get(file.substring(1));
            String what = f.getMethodName().startsWith("do_it") ? "" : (f.getClassName().isEmpty() ? "" : f.getClassName() + ".") + f.getMethodName();
            b.append(what.isEmpty() ? "top level" : what).append(" (");
            if (origin == null) origin = new int[] {count, 1};
            b.append("cell[").append(origin[0]).append("]:").append(origin[1] + Math.max(f.getLineNumber(), 1) - 1).append(')');
        }
        if (e.getCause() instanceof EvalException cause) b.append("\nCaused by: ").append(trace(cause));
        return b.toString();
    }

    static void cell(Map<String, String> r) {
        Cell c = new Cell();
        c.id = r.get("id");
        c.mark = r.get("mark");
        c.stdin = "true".equals(r.get("stdin"));
        c.count = ++count;
        cell = c;
        String end;
        try {
            String value = run(r.getOrDefault("code", ""));
            end = "\"status\":\"ok\"" + (value == null ? "" : ",\"value\":{\"text/plain\":" + json(value) + "}");
        } catch (Failure f) {
            end = "\"status\":\"error\"," + error(f.name, cut(f.getMessage(), 100_000), cut(f.trace, 100_000));
        } catch (RuntimeException e) {
            end = "\"status\":\"error\"," + error(e.getClass().getName(), String.valueOf(e.getMessage()), String.valueOf(e));
        }
        if (c.interrupted) end = "\"status\":\"interrupted\"," + error("Interrupted", "the cell was interrupted", "");
        finish(c, end);
    }

    static String error(String name, String message, String trace) {
        return "\"error\":{\"name\":" + json(name) + ",\"message\":" + json(message) + ",\"traceback\":" + json(trace) + "}";
    }

    static void finish(Cell c, String end) {
        System.out.flush();
        System.err.flush();
        for (PrintStream to : new PrintStream[] {out, err}) {
            to.print("\0" + c.mark);
            to.flush();
        }
        cell = null;
        send("{\"event\":\"done\",\"id\":" + c.id + ",\"count\":" + c.count + "," + end + "}");
        spent.forEach(shell::drop);
        spent.clear();
    }

    // --- requests beside cells -------------------------------------------------
    static void ask(Map<String, String> r) {
        String code = r.getOrDefault("code", "");
        int points = Integer.parseInt(r.getOrDefault("cursor", "0"));
        int cursor = code.offsetByCodePoints(0, Math.min(points, code.codePointCount(0, code.length())));
        StringBuilder b = new StringBuilder("{\"event\":\"reply\",\"id\":" + r.get("id"));
        try {
            switch (r.getOrDefault("op", "")) {
                case "complete" -> {
                    String before = code.substring(0, cursor);
                    // What stands before the statement, complete or not, only confuses JShell.
                    int from = Math.max(before.lastIndexOf('\n'), before.lastIndexOf(';')) + 1;
                    int[] anchor = {0};
                    var found = new TreeSet<String>();
                    for (var s : shell.sourceCodeAnalysis().completionSuggestions(before.substring(from), cursor - from, anchor)) found.add(s.continuation());
                    String word = before.substring(from + anchor[0]);
                    for (String k : KEYWORDS) if (!word.isEmpty() && k.startsWith(word) && !before.substring(0, from + anchor[0]).endsWith(".")) found.add(k);
                    StringJoiner names = new StringJoiner(",", "[", "]");
                    found.stream().limit(1000).forEach(n -> names.add(json(n)));
                    b.append(",\"matches\":").append(names).append(",\"start\":").append(code.codePointCount(0, from + anchor[0])).append(",\"end\":").append(points);
                }
                case "inspect" -> b.append(",\"text\":").append(json(inspect(code, cursor)));
                case "variables" -> {
                    StringJoiner list = new StringJoiner(",", "[", "]");
                    shell.variables().filter(v -> shell.status(v) == Snippet.Status.VALID && !v.name().startsWith("$")).forEach(v ->
                        list.add("{\"name\":" + json(v.name()) + ",\"type\":" + json(v.typeName()) + ",\"value\":" + json(cut(shell.varValue(v), 200)) + "}"));
                    b.append(",\"variables\":").append(list);
                }
                case "reset" -> {
                    shell.close();
                    open();
                }
                default -> b.append(",\"error\":\"unknown request\"");
            }
        } catch (RuntimeException e) {
            b.append(",\"error\":").append(json(e.toString()));
        }
        send(b.append('}').toString());
    }

    static String inspect(String code, int cursor) {
        int from = cursor, to = cursor;
        while (from > 0 && Character.isJavaIdentifierPart(code.charAt(from - 1))) from--;
        while (to < code.length() && Character.isJavaIdentifierPart(code.charAt(to))) to++;
        String name = code.substring(from, to);
        StringBuilder b = new StringBuilder();
        shell.variables().filter(v -> v.name().equals(name) && shell.status(v) == Snippet.Status.VALID)
            .forEach(v -> b.append(v.name()).append(": ").append(v.typeName()).append('\n').append(shell.varValue(v)));
        shell.methods().filter(m -> m.name().equals(name)).forEach(m -> b.append(m.source()));
        shell.types().filter(t -> t.name().equals(name)).forEach(t -> b.append(t.source()));
        if (b.length() == 0 && to > from)
            for (var d : shell.sourceCodeAnalysis().documentation(code.substring(0, to), to, false)) b.append(d.signature()).append('\n');
        return cut(b.toString(), 100_000);
    }

    public static void main(String[] args) throws Exception {
        System.setIn(new Input());
        open();
        send("{\"event\":\"ready\",\"language\":\"java\",\"version\":" + json(Runtime.version().toString()) + ",\"flavor\":\"jshell\"}");
        Thread reader = new Thread(kernel::listen, "requests");
        reader.setDaemon(true);
        reader.start();
        while (true) {
            Map<String, String> r = requests.take();
            if ("run".equals(r.get("op"))) cell(r);
            else ask(r);
        }
    }
}
