package backendtest

import (
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) programJava(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "java"}, "javac", "java")
	res := run(t, sb, `
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;

public class Threads {
    sealed interface Shape permits Circle, Square {}
    record Circle(double r) implements Shape {}
    record Square(double a) implements Shape {}

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(16);
        List<Future<Integer>> all = new ArrayList<>();
        for (int i = 0; i < 100; i++) { int n = i; all.add(pool.submit(() -> n * n)); }
        int sum = 0;
        for (Future<Integer> f : all) sum += f.get();
        pool.shutdown();
        System.out.println(sum + " " + pool.awaitTermination(5, TimeUnit.SECONDS));
        System.out.println(IntStream.rangeClosed(1, 2_000_000).parallel().filter(n -> n % 3 == 0).count());
        AtomicLong counter = new AtomicLong();
        CountDownLatch done = new CountDownLatch(50);
        for (int i = 0; i < 50; i++) new Thread(() -> { counter.incrementAndGet(); done.countDown(); }).start();
        done.await();
        System.out.println(counter);
        System.out.println(CompletableFuture.supplyAsync(() -> 20).thenCombine(CompletableFuture.supplyAsync(() -> 22), Integer::sum).get());
        System.out.println(Stream.of("b", "a", "c").sorted().collect(Collectors.joining(",")));
        Path p = Files.createTempFile("x", ".txt");
        Files.writeString(p, "text\n");
        System.out.print(Files.readString(p));
        Process child = new ProcessBuilder("echo", "child").redirectErrorStream(true).start();
        System.out.print(new String(child.getInputStream().readAllBytes()));
        Map<Integer, byte[]> big = new HashMap<>();
        for (int i = 0; i < 200; i++) big.put(i, new byte[1 << 20]);
        System.out.println(big.size() + " MiB");
        Shape s = new Square(3);
        if (s instanceof Square q) System.out.println(q.a() * q.a());
    }
}
`, nil)
	wantLines(t, res, "328350 true", "666666", "50", "42", "a,b,c", "text", "child", "200 MiB", "9.0")
}
