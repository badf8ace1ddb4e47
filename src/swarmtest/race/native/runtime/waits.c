/* Conditions, semaphores, barriers, sleeps, and the start and end of threads. */

#include "threads.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t nanoseconds_of(const struct timespec *time) {
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

static struct timespec time_of(uint64_t nanoseconds) {
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    return time;
}

/* Return an earlier point in time if timeouts are tampered with. */
static struct timespec sooner(clockid_t clock, const struct timespec *until) {
    struct timespec start;
    if (!tampers() || until->tv_nsec < 0 || until->tv_nsec >= 1000000000) return *until;
    clock_gettime(clock, &start);
    uint64_t begins = nanoseconds_of(&start), ends = nanoseconds_of(until);
    return ends <= begins ? *until : time_of(begins + shortened(ends - begins));
}

/* ---- conditions ---- */

#define WAIT_ON_CONDITION(operation, ends, wait)                                        \
    do {                                                                                \
        uint32_t site = event(CALLER, operation, condition);                            \
        mark(site, BLOCKED);                                                            \
        uint32_t taken = let_go(mutex);                                                 \
        wait_begins(operation, site, condition, ends);                                  \
        int answer = wait;                                                              \
        wait_ends();                                                                    \
        hold(mutex, taken);                                                             \
        after(site);                                                                    \
        return answer;                                                                  \
    } while (0)

EXPORTED int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex) {
    if (!self) return NEXT(pthread_cond_wait)(condition, mutex);
    WAIT_ON_CONDITION(CONDITION_WAIT, 0, NEXT(pthread_cond_wait)(condition, mutex));
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *restrict condition,
                                    pthread_mutex_t *restrict mutex,
                                    const struct timespec *restrict until) {
    /* The condition's clock cannot be queried, so the default one is assumed. */
    if (!self) return NEXT(pthread_cond_timedwait)(condition, mutex, until);
    struct timespec time = sooner(CLOCK_REALTIME, until);
    WAIT_ON_CONDITION(CONDITION_TIMEDWAIT, 1, NEXT(pthread_cond_timedwait)(condition, mutex, &time));
}

EXPORTED int pthread_cond_clockwait(pthread_cond_t *restrict condition,
                                    pthread_mutex_t *restrict mutex, clockid_t clock,
                                    const struct timespec *restrict until) {
    if (!self) return NEXT(pthread_cond_clockwait)(condition, mutex, clock, until);
    struct timespec time = sooner(clock, until);
    WAIT_ON_CONDITION(CONDITION_TIMEDWAIT, 1,
                      NEXT(pthread_cond_clockwait)(condition, mutex, clock, &time));
}

/* Make a call that never blocks. */
#define AT_ONCE(operation, object, call)                                                \
    do {                                                                                \
        if (!self) return call;                                                         \
        uint32_t site = event(CALLER, operation, object);                               \
        int answer = call;                                                              \
        after(site);                                                                    \
        return answer;                                                                  \
    } while (0)

EXPORTED int pthread_cond_signal(pthread_cond_t *condition) {
    AT_ONCE(SIGNAL, condition, NEXT(pthread_cond_signal)(condition));
}

EXPORTED int pthread_cond_broadcast(pthread_cond_t *condition) {
    AT_ONCE(BROADCAST, condition, NEXT(pthread_cond_broadcast)(condition));
}

/* ---- semaphores and barriers ---- */

#define WAIT_FOR_SEMAPHORE(ends, wait)                                                  \
    do {                                                                                \
        uint32_t site = event(CALLER, SEMAPHORE_WAIT, semaphore);                       \
        int answer = NEXT(sem_trywait)(semaphore);                                      \
        if (answer && errno == EAGAIN) {                                                \
            mark(site, BLOCKED);                                                        \
            wait_begins(SEMAPHORE_WAIT, site, semaphore, ends);                         \
            answer = wait;                                                              \
            wait_ends();                                                                \
        }                                                                               \
        after(site);                                                                    \
        return answer;                                                                  \
    } while (0)

EXPORTED int sem_wait(sem_t *semaphore) {
    if (!self) return NEXT(sem_wait)(semaphore);
    WAIT_FOR_SEMAPHORE(0, NEXT(sem_wait)(semaphore));
}

EXPORTED int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    if (!self) return NEXT(sem_timedwait)(semaphore, until);
    struct timespec time = sooner(CLOCK_REALTIME, until);
    WAIT_FOR_SEMAPHORE(1, NEXT(sem_timedwait)(semaphore, &time));
}

EXPORTED int sem_trywait(sem_t *semaphore) {
    AT_ONCE(SEMAPHORE_WAIT, semaphore, NEXT(sem_trywait)(semaphore));
}

EXPORTED int sem_post(sem_t *semaphore) {
    AT_ONCE(SEMAPHORE_POST, semaphore, NEXT(sem_post)(semaphore));
}

EXPORTED int pthread_barrier_wait(pthread_barrier_t *barrier) {
    if (!self) return NEXT(pthread_barrier_wait)(barrier);
    uint32_t site = event(CALLER, BARRIER, barrier);
    wait_begins(BARRIER, site, barrier, 0);
    int answer = NEXT(pthread_barrier_wait)(barrier);
    wait_ends();
    if (answer == 0) mark(site, BLOCKED);
    after(site);
    return answer;
}

/* ---- threads ---- */

struct start {
    void *(*function)(void *);
    void *argument;
    struct thread *thread;
    void *caller;
};

static void *started(void *given) {
    struct start start = *(struct start *)given;
    free(given);
    thread_begins(start.thread);
    event(start.caller, START, NULL);
    return start.function(start.argument);
}

EXPORTED int pthread_create(pthread_t *restrict handle, const pthread_attr_t *restrict attributes,
                            void *(*function)(void *), void *restrict argument) {
    if (!self) return NEXT(pthread_create)(handle, attributes, function, argument);
    uint32_t site = event(CALLER, CREATE, NULL);
    struct start *start = malloc(sizeof *start);
    if (!start) return EAGAIN;
    struct start values = {function, argument, new_thread(self), CALLER};
    *start = values;
    int answer = NEXT(pthread_create)(handle, attributes, started, start);
    if (answer) {
        thread_failed(values.thread);
        free(start);
    }
    after(site);
    return answer;
}

#define WAIT_FOR_THREAD(ends, attempt, wait)                                            \
    do {                                                                                \
        uint32_t site = event(CALLER, JOIN, NULL);                                      \
        int answer = attempt;                                                           \
        if (answer == EBUSY) {                                                          \
            mark(site, BLOCKED);                                                        \
            self->wait_thread = slot_of((uint64_t)handle);                              \
            wait_begins(JOIN, site, (const void *)handle, ends);                        \
            answer = wait;                                                              \
            wait_ends();                                                                \
        }                                                                               \
        if (!answer) thread_joined((uint64_t)handle);                                   \
        after(site);                                                                    \
        return answer;                                                                  \
    } while (0)

EXPORTED int pthread_join(pthread_t handle, void **result) {
    if (!self) return NEXT(pthread_join)(handle, result);
    WAIT_FOR_THREAD(0, NEXT(pthread_tryjoin_np)(handle, result), NEXT(pthread_join)(handle, result));
}

EXPORTED int pthread_timedjoin_np(pthread_t handle, void **result, const struct timespec *until) {
    if (!self) return NEXT(pthread_timedjoin_np)(handle, result, until);
    WAIT_FOR_THREAD(1, NEXT(pthread_tryjoin_np)(handle, result),
                    NEXT(pthread_timedjoin_np)(handle, result, until));
}

/* ---- sleeps ---- */

#define SLEEPING(sleep)                                                                 \
    do {                                                                                \
        uint32_t site = event(CALLER, SLEEP, NULL);                                     \
        wait_begins(SLEEP, site, NULL, 1);                                              \
        __auto_type answer = sleep;                                                     \
        wait_ends();                                                                    \
        after(site);                                                                    \
        return answer;                                                                  \
    } while (0)

static unsigned shorter_sleep(unsigned seconds) {
    struct timespec time = time_of(shortened((uint64_t)seconds * 1000000000)), left = {0, 0};
    return NEXT(nanosleep)(&time, &left) ? (unsigned)(left.tv_sec + (left.tv_nsec > 0)) : 0;
}

EXPORTED unsigned sleep(unsigned seconds) {
    if (!self) return NEXT(sleep)(seconds);
    SLEEPING(shorter_sleep(seconds));
}

EXPORTED int usleep(useconds_t microseconds) {
    if (!self) return NEXT(usleep)(microseconds);
    SLEEPING(NEXT(usleep)((useconds_t)(shortened((uint64_t)microseconds * 1000) / 1000)));
}

EXPORTED int nanosleep(const struct timespec *asked, struct timespec *left) {
    if (!self || asked->tv_sec < 0 || asked->tv_nsec < 0 || asked->tv_nsec >= 1000000000)
        return NEXT(nanosleep)(asked, left);
    struct timespec time = time_of(shortened(nanoseconds_of(asked)));
    SLEEPING(NEXT(nanosleep)(&time, left));
}

EXPORTED int clock_nanosleep(clockid_t clock, int flags, const struct timespec *asked,
                             struct timespec *left) {
    if (!self || asked->tv_sec < 0 || asked->tv_nsec < 0 || asked->tv_nsec >= 1000000000)
        return NEXT(clock_nanosleep)(clock, flags, asked, left);
    struct timespec time = flags & TIMER_ABSTIME ? sooner(clock, asked)
                                                 : time_of(shortened(nanoseconds_of(asked)));
    SLEEPING(NEXT(clock_nanosleep)(clock, flags, &time, left));
}
