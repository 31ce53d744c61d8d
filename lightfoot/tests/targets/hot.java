import java.util.*;

/** A loop that is compiled while it runs, a table of strings, and four threads. */
public class Hot {
    static long sum(int n) {
        long s = 0;
        for (int i = 0; i < n; i++) s += (i * 31L) ^ (s >>> 3);
        return s;
    }

    public static void main(String[] words) throws Exception {
        long total = 0;
        for (int k = 0; k < 500; k++) total += sum(10000 + k);
        Map<String, Integer> table = new HashMap<>();
        for (int i = 0; i < 50000; i++) table.merge("k" + (i % 1000), 1, Integer::sum);
        Thread[] threads = new Thread[4];
        long[] sums = new long[4];
        for (int i = 0; i < 4; i++) {
            final int own = i;
            threads[i] = new Thread(() -> sums[own] = sum(500000 + own));
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println(total + " " + table.size() + " " + Arrays.toString(sums));
    }
}
