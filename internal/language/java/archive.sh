# Makes an archive of the classes that javac loads. javac works without it, so a JVM that
# cannot make one leaves the directory empty.
dir=$1
shift
mkdir -p "$dir" && cd "$dir" || exit
cat >Train.java <<'end'
import java.io.*;
import java.util.*;
import java.util.function.*;
import java.util.stream.*;

public class Train {
    interface Shape { double area(); }
    static class Circle implements Shape {
        private final double r;
        Circle(double r) { this.r = r; }
        @Override public double area() { return Math.PI * r * r; }
    }
    enum Color { RED, GREEN }
    static <T extends Comparable<T>> T largest(List<? extends T> of) {
        T best = null;
        for (T t : of) if (best == null || t.compareTo(best) > 0) best = t;
        return best;
    }
    static int classify(Object o, Color c) throws IOException {
        int n = 0;
        switch (c) { case RED: n = 1; break; default: n += 2; }
        switch (o.toString()) { case "a": n++; break; case "b": n--; }
        try (StringReader r = new StringReader("x")) { n += r.read(); } catch (RuntimeException | Error e) { throw e; } finally { n++; }
        while (n > 3) { n -= 2; if (n == 4) continue; }
        do n++; while (n < 0);
        return o instanceof String && n > 0 ? n : (int) 3L;
    }
    public static void main(String[] args) throws Exception {
        Map<String, Integer> count = new TreeMap<>();
        for (String w : "a b a".split(" ")) count.merge(w, 1, Integer::sum);
        int[] numbers = {3, 1, 2};
        Shape square = () -> 4.0;
        Runnable r = new Runnable() { public void run() { System.out.println(count); } };
        r.run();
        Function<Integer, Integer> twice = n -> 2 * n;
        System.out.println(IntStream.of(numbers).boxed().map(twice).filter(n -> n > 2).collect(Collectors.toList()));
        System.out.println("x" + largest(Arrays.asList(1, 2)) + classify("a", Color.RED) + square.area() + new Circle(1).area());
        System.out.printf("%d %.2f%n", numbers[0]++, 1.5f);
    }
}
end
mkdir classes
"$@" -J-XX:ArchiveClassesAtExit=javac.jsa -d classes Train.java >/dev/null 2>&1
rm -rf Train.java classes
