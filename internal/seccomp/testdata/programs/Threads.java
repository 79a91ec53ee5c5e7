import java.net.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

public class Threads {
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Integer>> fs = new ArrayList<>();
        for (int i = 0; i < 50; i++) { final int n = i; fs.add(pool.submit(() -> n * n)); }
        int sum = 0;
        for (Future<Integer> f : fs) sum += f.get();
        pool.shutdown();
        for (int i = 0; i < 200; i++) { byte[] garbage = new byte[1 << 20]; sum += garbage.length & 1; }
        System.gc();
        Process p = new ProcessBuilder("echo", "hi").start();
        if (p.waitFor() != 0) throw new Exception("child");
        if (System.getenv("NO_SOCKETS") == null) serve();
        Path f = Files.createTempFile("t", "x");
        Files.delete(f);
        if (sum != 40425) throw new Exception("sum " + sum);
        System.out.println("works");
    }

    static void serve() throws Exception {
        try (ServerSocket s = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
             Socket c = new Socket(s.getInetAddress(), s.getLocalPort())) { s.accept().close(); }
        Collections.list(NetworkInterface.getNetworkInterfaces());
        FileSystems.getDefault().newWatchService().close();
    }
}
