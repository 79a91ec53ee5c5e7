#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static void *nothing(void *x) { return x; }

/* Threads that are bound to processors, by OpenMP and by the C library. */
int main() {
    int n = 0;
    #pragma omp parallel for reduction(+:n) num_threads(4)
    for (int i = 0; i < 1000; i++) n += i;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    pthread_t t;
    if (pthread_create(&t, &attr, nothing, 0) || pthread_join(t, 0)) return 1;
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) || sched_setaffinity(0, sizeof set, &set)) return 2;
    if (n == 499500) puts("works");
}
