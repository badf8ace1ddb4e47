/* The probe with pair coverage: notes each two sites that are passed one after the other, and
   whether the thread changed in between. A set of 64-bit numbers, exact, that grows when needed.
   It relies on the GIL; builds without one use the Python version. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define SITE_BITS 24
#define SITE_MASK ((1u << SITE_BITS) - 1)
#define FIRST_SIZE 4096

typedef struct {
    PyObject_HEAD
    uint64_t *table; /* pairs plus one, so that 0 is an empty place */
    size_t mask;
    size_t used;
    uint64_t last_thread; /* 0: no site has been passed */
    uint64_t last_site;
    PyObject *inner; /* the probe to call first, or NULL */
} Pairs;

static inline size_t place_of(uint64_t value, size_t mask)
{
    return (size_t)((value * 0x9E3779B97F4A7C15ull) >> 32) & mask;
}

static int grow(Pairs *self)
{
    size_t size = (self->mask + 1) * 2, i;
    uint64_t *table = PyMem_Calloc(size, sizeof(uint64_t));
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (i = 0; i <= self->mask; i++) {
        uint64_t value = self->table[i];
        if (value) {
            size_t at = place_of(value, size - 1);
            while (table[at])
                at = (at + 1) & (size - 1);
            table[at] = value;
        }
    }
    PyMem_Free(self->table);
    self->table = table;
    self->mask = size - 1;
    return 0;
}

static inline int note(Pairs *self, uint64_t pair)
{
    uint64_t value = pair + 1;
    size_t at = place_of(value, self->mask);
    while (self->table[at]) {
        if (self->table[at] == value)
            return 0;
        at = (at + 1) & self->mask;
    }
    self->table[at] = value;
    self->used++;
    return self->used * 2 > self->mask ? grow(self) : 0;
}

/* Notes a site; -1 with an exception set if that cannot be done. */
static inline int pass_number(Pairs *self, long number)
{
    uint64_t site = (uint64_t)number, thread;
    if (site > SITE_MASK) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a site is a number below 2**24");
        return -1;
    }
    thread = PyThreadState_GetID(PyThreadState_Get());
    if (self->last_thread) {
        uint64_t changed = thread != self->last_thread;
        if (note(self, self->last_site << (SITE_BITS + 1) | site << 1 | changed) < 0)
            return -1;
    }
    self->last_thread = thread;
    self->last_site = site;
    return 0;
}

static inline int pass(Pairs *self, PyObject *number)
{
    return pass_number(self, PyLong_AsLong(number));
}

static PyObject *Pairs_access(Pairs *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *obj;
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "a probe takes a site and perhaps an object");
        return NULL;
    }
    if (self->inner != NULL) {
        /* Other threads may run in there: the access comes after what they do. */
        PyObject *inner = self->inner;
        Py_INCREF(inner);
        obj = PyObject_Vectorcall(inner, args, (size_t)count, NULL);
        Py_DECREF(inner);
        if (obj == NULL)
            return NULL;
    } else {
        obj = count == 2 ? args[1] : Py_None;
        Py_INCREF(obj);
    }
    if (pass(self, args[0]) < 0)
        Py_CLEAR(obj);
    return obj;
}

static PyObject *Pairs_passes(Pairs *self, PyObject *site)
{
    if (pass(self, site) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *Pairs_reset(Pairs *self, PyObject *inner)
{
    PyObject *before = self->inner;
    memset(self->table, 0, (self->mask + 1) * sizeof(uint64_t));
    self->used = 0;
    self->last_thread = 0;
    Py_INCREF(inner);
    self->inner = inner == Py_None ? NULL : inner;
    if (inner == Py_None)
        Py_DECREF(inner);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *Pairs_began(Pairs *self, PyObject *ident)
{
    (void)self, (void)ident; /* the interpreter gives no thread's number to another */
    Py_RETURN_NONE;
}

static PyObject *Pairs_pairs(Pairs *self, PyObject *ignored)
{
    size_t i;
    PyObject *list = PyList_New(0);
    (void)ignored;
    for (i = 0; list != NULL && i <= self->mask; i++) {
        if (self->table[i]) {
            PyObject *pair = PyLong_FromUnsignedLongLong(self->table[i] - 1);
            if (pair == NULL || PyList_Append(list, pair) < 0)
                Py_CLEAR(list);
            Py_XDECREF(pair);
        }
    }
    return list;
}

static PyObject *Pairs_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Pairs *self;
    if (PyTuple_GET_SIZE(args) || (kwargs != NULL && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "Pairs() takes no arguments");
        return NULL;
    }
    self = (Pairs *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->table = PyMem_Calloc(FIRST_SIZE, sizeof(uint64_t));
    self->mask = FIRST_SIZE - 1;
    if (self->table == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int Pairs_traverse(Pairs *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->inner);
    return 0;
}

static int Pairs_clear(Pairs *self)
{
    Py_CLEAR(self->inner);
    return 0;
}

static void Pairs_dealloc(Pairs *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Pairs_clear(self);
    PyMem_Free(self->table);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Pairs_methods[] = {
    {"access", (PyCFunction)(void (*)(void))Pairs_access, METH_FASTCALL, "The probe."},
    {"passes", (PyCFunction)Pairs_passes, METH_O, "Note a site at which there is no probe."},
    {"reset", (PyCFunction)Pairs_reset, METH_O, "Forget all pairs; call this probe first."},
    {"began", (PyCFunction)Pairs_began, METH_O, "A thread begins."},
    {"pairs", (PyCFunction)Pairs_pairs, METH_NOARGS, "The pairs that were passed."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Pairs_slots[] = {
    {Py_tp_new, Pairs_new},
    {Py_tp_dealloc, Pairs_dealloc},
    {Py_tp_traverse, Pairs_traverse},
    {Py_tp_clear, Pairs_clear},
    {Py_tp_methods, Pairs_methods},
    {0, NULL},
};

static PyType_Spec Pairs_spec = {
    .name = "_swarmtest_probe.Pairs",
    .basicsize = sizeof(Pairs),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = Pairs_slots,
};

/* Locks that nobody else holds, in a free run that makes no noise. Whatever is not common is left
   to the policy's own methods, which are in Python. */

typedef struct {
    PyObject *code; /* NULL: an empty place */
    int instruction;
    long site; /* -1: it is library code that takes the lock */
} Known;

typedef struct {
    PyObject_HEAD
    PyObject *policy;
    PyObject *threads; /* the policy's tasks, by the identities of their threads */
    PyObject *pairs;   /* where to note sites, or NULL */
    PyObject *acquire; /* the policy's own method */
    PyObject *blocked; /* what it does when a lock is not free */
    Known *known;
    size_t mask;
    size_t used;
} Locks;

static PyObject *word_acquire, *word_release, *word_raw, *word_owner, *word_held, *word_doing,
    *word_progress;

static Known *find(Known *known, size_t mask, PyObject *code, int instruction)
{
    size_t at = place_of((uint64_t)(uintptr_t)code + (uint64_t)instruction, mask);
    while (known[at].code && (known[at].code != code || known[at].instruction != instruction))
        at = (at + 1) & mask;
    return &known[at];
}

static PyObject *Locks_learn(Locks *self, PyObject *args)
{
    PyObject *code;
    int instruction;
    long site;
    Known *place;
    if (!PyArg_ParseTuple(args, "Oil", &code, &instruction, &site))
        return NULL;
    if ((self->used + 1) * 2 > self->mask) {
        size_t size = (self->mask + 1) * 2, i;
        Known *bigger = PyMem_Calloc(size, sizeof(Known));
        if (bigger == NULL)
            return PyErr_NoMemory();
        for (i = 0; i <= self->mask; i++) {
            Known *old = &self->known[i];
            if (old->code)
                *find(bigger, size - 1, old->code, old->instruction) = *old;
        }
        PyMem_Free(self->known);
        self->known = bigger;
        self->mask = size - 1;
    }
    place = find(self->known, self->mask, code, instruction);
    if (place->code == NULL) {
        Py_INCREF(code);
        *place = (Known){code, instruction, site};
        self->used++;
    }
    Py_RETURN_NONE;
}

/* Notes from where a lock is taken: 1 if that is done, 0 if the place is not known, -1: failed. */
static int note_caller(Locks *self)
{
    int done = 0;
    PyFrameObject *own = PyThreadState_GetFrame(PyThreadState_Get());
    PyFrameObject *caller = own ? PyFrame_GetBack(own) : NULL;
    if (caller != NULL) {
        PyCodeObject *code = PyFrame_GetCode(caller);
        Known *place = find(self->known, self->mask, (PyObject *)code, PyFrame_GetLasti(caller));
        if (place->code != NULL)
            done = place->site < 0 || pass_number((Pairs *)self->pairs, place->site) == 0 ? 1 : -1;
        Py_DECREF(code);
    }
    Py_XDECREF(caller);
    Py_XDECREF(own);
    return done;
}

static int hold(PyObject *task, PyObject *lock)
{
    PyObject *held = PyObject_GetAttr(task, word_held);
    int failed = held == NULL || PyList_Append(held, lock) < 0 ||
                 PyObject_SetAttr(lock, word_owner, task) < 0;
    Py_XDECREF(held);
    return failed ? -1 : 0;
}

static int is_busy(PyObject *task)
{
    PyObject *doing = PyObject_GetAttr(task, word_doing);
    int busy = doing == NULL ? -1 : PyObject_IsTrue(doing);
    Py_XDECREF(doing);
    return busy;
}

static int try_raw(PyObject *lock)
{
    int taken = -1;
    PyObject *raw = PyObject_GetAttr(lock, word_raw), *answer = NULL;
    if (raw != NULL)
        answer = PyObject_CallMethodOneArg(raw, word_acquire, Py_False);
    if (answer != NULL)
        taken = answer == Py_True;
    Py_XDECREF(answer);
    Py_XDECREF(raw);
    return taken;
}

static PyObject *Locks_acquire(Locks *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *ident, *task, *answer = NULL;
    int known = 1, taken;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "acquire takes a lock, blocking and a timeout");
        return NULL;
    }
    ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    task = ident ? PyDict_GetItemWithError(self->threads, ident) : NULL;
    Py_XINCREF(task);
    Py_XDECREF(ident);
    if (task == NULL)
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(self->acquire, args, 3, NULL);
    if (self->pairs != NULL) {
        int busy = is_busy(task);
        known = busy < 0 ? -1 : busy ? 1 : note_caller(self);
    }
    if (known == 0) {
        answer = PyObject_Vectorcall(self->acquire, args, 3, NULL);
    } else if (known > 0) {
        taken = try_raw(args[0]);
        if (taken > 0 && hold(task, args[0]) == 0)
            answer = Py_NewRef(Py_True);
        else if (taken == 0) {
            PyObject *all[4] = {task, args[0], args[1], args[2]};
            answer = PyObject_Vectorcall(self->blocked, all, 4, NULL);
        }
    }
    Py_DECREF(task);
    return answer;
}

static int let_go(PyObject *owner, PyObject *lock)
{
    int failed = 0;
    Py_ssize_t i;
    PyObject *held = PyObject_GetAttr(owner, word_held);
    if (held == NULL || PyObject_SetAttr(lock, word_owner, Py_None) < 0)
        failed = -1;
    for (i = failed ? -1 : PyList_GET_SIZE(held) - 1; i >= 0; i--) {
        if (PyList_GET_ITEM(held, i) == lock) {
            failed = PyList_SetSlice(held, i, i + 1, NULL);
            break;
        }
    }
    Py_XDECREF(held);
    return failed;
}

static PyObject *Locks_release(Locks *self, PyObject *lock)
{
    PyObject *owner, *raw, *answer, *progress;
    owner = PyObject_GetAttr(lock, word_owner);
    if (owner == NULL || (owner != Py_None && let_go(owner, lock) < 0)) {
        Py_XDECREF(owner);
        return NULL;
    }
    Py_DECREF(owner);
    raw = PyObject_GetAttr(lock, word_raw);
    answer = raw ? PyObject_CallMethodNoArgs(raw, word_release) : NULL;
    Py_XDECREF(raw);
    if (answer == NULL)
        return NULL;
    progress = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    if (progress == NULL || PyObject_SetAttr(self->policy, word_progress, progress) < 0)
        Py_CLEAR(answer);
    Py_XDECREF(progress);
    return answer;
}

static PyObject *Locks_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Locks *self;
    PyObject *policy, *threads, *pairs, *acquire, *blocked;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OO!OOO", &policy, &PyDict_Type, &threads, &pairs, &acquire, &blocked))
        return NULL;
    self = (Locks *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->policy = Py_NewRef(policy);
    self->threads = Py_NewRef(threads);
    self->pairs = pairs == Py_None ? NULL : Py_NewRef(pairs);
    self->acquire = Py_NewRef(acquire);
    self->blocked = Py_NewRef(blocked);
    self->mask = 63;
    self->known = PyMem_Calloc(self->mask + 1, sizeof(Known));
    if (self->known == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int Locks_traverse(Locks *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->policy);
    Py_VISIT(self->threads);
    Py_VISIT(self->pairs);
    Py_VISIT(self->acquire);
    Py_VISIT(self->blocked);
    return 0;
}

static int Locks_clear(Locks *self)
{
    Py_CLEAR(self->policy);
    Py_CLEAR(self->threads);
    Py_CLEAR(self->pairs);
    Py_CLEAR(self->acquire);
    Py_CLEAR(self->blocked);
    return 0;
}

static void Locks_dealloc(Locks *self)
{
    PyTypeObject *type = Py_TYPE(self);
    size_t i;
    PyObject_GC_UnTrack(self);
    Locks_clear(self);
    for (i = 0; self->known != NULL && i <= self->mask; i++)
        Py_XDECREF(self->known[i].code);
    PyMem_Free(self->known);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Locks_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))Locks_acquire, METH_FASTCALL, "Take a lock."},
    {"release", (PyCFunction)Locks_release, METH_O, "Give a lock back."},
    {"learn", (PyCFunction)Locks_learn, METH_VARARGS, "Which site an instruction is; -1: none."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Locks_slots[] = {
    {Py_tp_new, Locks_new},
    {Py_tp_dealloc, Locks_dealloc},
    {Py_tp_traverse, Locks_traverse},
    {Py_tp_clear, Locks_clear},
    {Py_tp_methods, Locks_methods},
    {0, NULL},
};

static PyType_Spec Locks_spec = {
    .name = "_swarmtest_probe.Locks",
    .basicsize = sizeof(Locks),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = Locks_slots,
};

static int add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type == NULL)
        return -1;
    if (PyModule_AddObject(module, name, type) < 0) {
        Py_DECREF(type);
        return -1;
    }
    return 0;
}

static int execute(PyObject *module)
{
    if (!(word_acquire = PyUnicode_InternFromString("acquire")) ||
        !(word_release = PyUnicode_InternFromString("release")) ||
        !(word_raw = PyUnicode_InternFromString("raw")) ||
        !(word_owner = PyUnicode_InternFromString("owner")) ||
        !(word_held = PyUnicode_InternFromString("held")) ||
        !(word_doing = PyUnicode_InternFromString("doing")) ||
        !(word_progress = PyUnicode_InternFromString("_progress")))
        return -1;
    if (add_type(module, "Pairs", &Pairs_spec) < 0)
        return -1;
    return add_type(module, "Locks", &Locks_spec);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_swarmtest_probe",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__swarmtest_probe(void)
{
    return PyModuleDef_Init(&module_definition);
}
