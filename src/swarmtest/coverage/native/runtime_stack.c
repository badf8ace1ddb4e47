/* The stack of a crash: part of runtime.c, which includes it.

   A signal says little: most bugs of C end in SIGSEGV. So the functions that were being executed are
   written into the shared memory, behind the table of modules, before the signal ends the process.
   A program that handles a signal itself, or a sanitizer that does, is left alone. */

#if __has_include(<execinfo.h>)

enum { FRAMES = 32, NAME_LENGTH = 248, STACK_OFFSET = 40960 };

struct frame {
    uint64_t place;         /* link-time address of the code */
    char path[NAME_LENGTH]; /* of the library; empty: the program */
};

struct crash {
    uint32_t signal;
    uint32_t count;
    struct frame frames[FRAMES];
};

_Static_assert(sizeof(struct header) <= STACK_OFFSET
               && STACK_OFFSET + sizeof(struct crash) <= HEADER_SIZE, "the stack has its place");

static uintptr_t place_of_crash(void *context) {
#if defined __x86_64__
    return (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
    return (uintptr_t)((ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* Who called what is no code: a jump through a wrong pointer leaves only a return address. */
static uintptr_t caller_of_jump(void *context) {
#if defined __x86_64__
    return *(uintptr_t *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
#elif defined __aarch64__
    return (uintptr_t)((ucontext_t *)context)->uc_mcontext.regs[30];
#else
    (void)context;
    return 0;
#endif
}

static void add_frame(struct crash *crash, uintptr_t place) {
    Dl_info info;
    struct frame *frame = &crash->frames[crash->count];
    if (!dladdr((void *)place, &info)) return;
    frame->path[0] = 0;
    if (place - self.bias - self.text < self.size) {
        frame->place = place - self.bias;
    } else {
        frame->place = place - (uintptr_t)info.dli_fbase;
        if (info.dli_fname) strncpy(frame->path, info.dli_fname, NAME_LENGTH - 1);
    }
    crash->count++;
}

static void on_crash(int number, siginfo_t *info, void *context) {
    (void)info;
    struct crash *crash = (struct crash *)((char *)header + STACK_OFFSET);
    uintptr_t at = place_of_crash(context);
    crash->count = 0;
    crash->signal = (uint32_t)number;
    add_frame(crash, at);
    if (crash->count) {
        void *places[FRAMES + 8];
        int count = backtrace(places, FRAMES + 8), first = 0;
        while (first < count && (uintptr_t)places[first] != at) first++;
        /* A return address lies behind the call, which may be the last of its function. */
        for (int i = first + 1; i < count && crash->count < FRAMES; i++)
            add_frame(crash, (uintptr_t)places[i] - 1);
    } else { /* from there, nothing finds the way back */
        add_frame(crash, caller_of_jump(context) - 1);
    }
    signal(number, SIG_DFL);
    raise(number); /* when this returns */
}

static void watch_crashes(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    static char room[1 << 16];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    stack_t before;
    void *once[1];
    /* A static program has no loader, and cannot load what unwinds its stack. */
    if (!self.is_executable || !getauxval(AT_BASE) || sigaltstack(NULL, &before) < 0) return;
    backtrace(once, 1); /* loads what it needs, which it cannot in a crash */
    if (before.ss_flags & SS_DISABLE) sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction now;
        struct sigaction ours = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        if (sigaction(numbers[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO)
            && now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &ours, NULL);
    }
}
#else
static void watch_crashes(void) {}
#endif
