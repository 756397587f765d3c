/* Preloaded into a server: its wall clock is off by the nanoseconds in a file, which may change. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BILLION 1000000000LL

static volatile long long *offset_ns;
static int (*whole)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SKEWED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    whole = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (file >= 0) {
        void *found = mmap(NULL, sizeof *offset_ns, PROT_READ, MAP_SHARED, file, 0);
        offset_ns = found == MAP_FAILED ? NULL : found;
        close(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!whole)
        whole = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int error = whole(clock, now);
    if (!error && offset_ns && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        long long ns = now->tv_sec * BILLION + now->tv_nsec + *offset_ns;
        now->tv_sec = ns / BILLION;
        now->tv_nsec = ns % BILLION;
    }
    return error;
}

time_t time(time_t *there) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (there)
        *there = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    int error = clock_gettime(CLOCK_REALTIME, &found);
    (void)zone;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return error;
}
