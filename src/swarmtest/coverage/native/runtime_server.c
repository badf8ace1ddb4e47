/* The fork server: part of runtime.c, which includes it, so that all of the runtime is one object.

   One byte on the control pipe orders a test; the answers are messages on the status pipe. The
   server dies with the process that started it, and a test dies with its server. */

enum { HELLO, STARTED, ENDED };

struct message {
    int32_t kind;
    int32_t value; /* a process id, or a status as of waitpid */
    uint64_t cpu;  /* microseconds */
};

static struct {
    int control, status; /* file descriptors */
    int per_process;     /* tests that one process runs; 0: it does not know of swarmtest_next */
    struct sigaction on_child; /* as the program has it */
} server;

static int read_orders(void) {
    const char *orders = getenv("SWARMTEST_SERVER");
    return orders
        && sscanf(orders, "%d,%d,%d", &server.control, &server.status, &server.per_process) == 3;
}

static void tell(int32_t kind, int32_t value, uint64_t cpu) {
    struct message message = {kind, value, cpu};
    if (write(server.status, &message, sizeof message) != sizeof message) _exit(0);
}

static uint64_t microseconds(const struct rusage *usage) {
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000
         + (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

/* The CPU time of this process since the last call: a test also causes the fork that it runs in. */
static uint64_t own_microseconds(void) {
    static uint64_t before;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    uint64_t now = microseconds(&usage), since = now - before;
    before = now;
    return since;
}

static void kill_children(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *listing = fopen(path, "re");
    int child;
    while (listing && fscanf(listing, "%d", &child) == 1) kill(child, SIGKILL);
    if (listing) fclose(listing);
}

/* End what a test left behind, which the kernel gives to this process; return its CPU time. */
static uint64_t end_orphans(void) {
    uint64_t spent = 0;
    struct rusage usage;
    for (int rounds = 0; rounds < 1000; rounds++) {
        pid_t ended = wait4(-1, NULL, WNOHANG, &usage);
        if (ended < 0) break; /* there is none */
        if (ended > 0) {
            spent += microseconds(&usage);
            continue;
        }
        kill_children();
        usleep(200);
    }
    return spent;
}

/* Wait until the child ends or, in persistent mode, stops after a test. */
static int await(pid_t child, struct rusage *usage) {
    int how = server.per_process ? WUNTRACED : 0, status = 0;
    siginfo_t info;
    while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT | (how ? WSTOPPED : 0)) < 0) {}
    if (info.si_code != CLD_STOPPED) kill(-child, SIGKILL); /* what it started and left behind */
    while (wait4(child, &status, how, usage) < 0) {}
    return status;
}

static void become_test(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    sigaction(SIGCHLD, &server.on_child, NULL);
    close(server.control);
    close(server.status);
}

/* Returns in a new process for every test; never in this one. */
static void serve(void) {
    unsetenv("SWARMTEST_SERVER"); /* not for programs that this one starts */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct sigaction waited_for = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &waited_for, &server.on_child);
    fcntl(server.control, F_SETFD, FD_CLOEXEC);
    fcntl(server.status, F_SETFD, FD_CLOEXEC);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    tell(HELLO, getpid(), own_microseconds());
    pid_t child = 0; /* stopped, waiting for its next test */
    int left = 0;
    uint64_t spent = 0;
    for (char order; read(server.control, &order, 1) == 1;) {
        uint64_t orphans = 0;
        if (child && !left) {
            kill(-child, SIGKILL);
            while (waitpid(child, NULL, 0) < 0) {}
            child = 0;
            orphans = end_orphans();
        }
        if (child) {
            kill(child, SIGCONT);
        } else {
            child = fork();
            if (child == 0) {
                become_test();
                return;
            }
            if (child < 0) _exit(1);
            setpgid(child, child);
            left = server.per_process;
            spent = 0;
        }
        left--;
        tell(STARTED, child, 0);
        struct rusage usage;
        int status = await(child, &usage);
        uint64_t total = microseconds(&usage);
        if (!WIFSTOPPED(status)) {
            child = 0;
            orphans += end_orphans();
        }
        tell(ENDED, status, total - spent + orphans + own_microseconds());
        spent = total;
    }
    if (child) kill(-child, SIGKILL);
    _exit(0);
}

/* For persistent mode: `while (swarmtest_next()) { ...one test... }`. */
int swarmtest_next(void) {
    static int tests, served;
    if (tests++ == 0) {
        served = read_orders();
        if (served) serve();
        return 1;
    }
    if (!served) return 0;
    fflush(NULL);
    raise(SIGSTOP);
    prepare_next_test();
    rewind(stdin);
    return 1;
}
