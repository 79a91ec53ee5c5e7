# Part of sitecustomize.py in an interpreter that imports modules, and forks programs that have them.
# It is executed in a copy of that one's dictionary, which is in own, and ahead(modules) after it.


def literal(text):
    """Reads JSON without true, false and null, which is Python. Module json takes long to
    load, and the program would find it loaded."""
    return eval(text.decode(), {"__builtins__": {}})


def load(modules, enters):
    """Imports modules, and returns the names that no file beside the program may have: its
    imports would find the file first."""
    for name in ["select", "_socket", "_thread", "_weakref"] + ["array", "resource"] * enters:
        unseen(name)  # so that none of their classes looks like the program's
    atexit, gc, ctypes = unseen("atexit"), unseen("gc"), unseen("_ctypes")
    before = set(sys.modules)
    held = {}
    first = not atexit._ncallbacks()  # then what is registered here is called last

    def call(name, argument):
        ctypes.call_function(ctypes.dlsym(ctypes.dlopen(None, 0), name), (argument,))

    streams = sys.stdout, sys.stderr

    # When it ends, Python clears all modules and all strings, which copies most of the memory that a fork shares. Unless
    # that is seen, the process is ended instead, or these modules are left out if more may be called or the exit code is not known.
    @atexit.register
    def leave():
        try:
            if not plain or not ends_unseen(gc, newest):
                return
            if first and main and atexit._ncallbacks() == callbacks and has_ended_well() and flushes(streams):
                call("fflush", None)
                os._exit(0)
        except Exception:
            return  # the program has changed what this looks at
        for name, module in held.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]

    try:
        for module in modules:
            __import__(module)
            threading = sys.modules.get("threading")
            if threading is not None and threading.active_count() > 1:
                raise RuntimeError("it starts a thread, which programs that are forked do not have")
    except BaseException as problem:
        refuse("%s: %s: %s" % (module, type(problem).__name__, problem))
    others = {id(module) for module in (sys, sys.modules["builtins"], sys.modules["__main__"])}
    held.update((name, module) for name, module in sys.modules.items() if id(module) not in others)
    plain = all(is_plain_module(*item) for item in held.items())
    newest, callbacks = next(reversed(sys.modules)), atexit._ncallbacks()
    # Whoever looks at all modules once they are shared copies the memory of each.
    mains.extend(name for name, module in sys.modules.items() if module is sys.modules["__main__"])
    loaded = {name.partition(".")[0] for name in set(held) - before}
    # This is never collected, so that nothing of it is cleared later either.
    unreachable = [held, loaded, globals()]
    unreachable.append(unreachable)
    # The program's collections, and the one at its end, would go through all of it: with pandas and
    # matplotlib that is most of the time that a short program takes.
    gc.collect()
    gc.freeze()
    try:
        call("malloc_trim", 0)  # else glibc goes through small pieces of memory in each program
    except OSError:
        pass  # another C library
    return loaded


# Modules whose objects do nothing that is seen when they go, unless they have a finalizer. Databases write what they have not written.
PLAIN = frozenset(getattr(sys, "stdlib_module_names", ())) - {"_dbm", "_gdbm", "_sqlite3"} | set("PIL contourpy kiwisolver matplotlib numpy pandas".split())


def is_plain(name):
    return name.partition(".")[0] in PLAIN


def is_plain_module(name, module):
    """Tells whether objects of a module do nothing that is seen when they go, unless they have a finalizer: what is
    written in Python cannot do anything else."""
    file = type(module) is type(sys) and module.__dict__.get("__file__")
    return not isinstance(file, str) or not file.endswith(".so") or is_plain(name)


def has_ended_well():
    """Tells, when all else that is called at the end has been, whether the program has come to the end of its file. Python
    removes two names then and after an exception, but not when SystemExit has ended it."""
    module = sys.modules["__main__"]
    if main() is not module:
        return False
    names = module.__dict__
    kept = all(name in names for name in ("__name__", "__loader__", "__spec__", "__builtins__"))
    return kept and "__file__" not in names and "__cached__" not in names and not hasattr(sys, "last_type") and sys.excepthook is sys.__excepthook__


def ends_unseen(gc, newest):
    """Tells whether nothing of the rest of the end is seen: there is no thread, and no object that does something when it goes."""
    if unseen("_thread")._count() or gc.get_debug() or gc.callbacks or gc.garbage:
        return False
    for name, module in reversed(sys.modules.items()):
        if name == newest:
            break  # this and those before were there already
        if not is_plain_module(name, module):
            return False
    objects = gc.get_objects()  # without those that are frozen
    return len(objects) <= 200000 and all(map(goes_unseen(objects), objects))


def flushes(streams):
    """Writes what is buffered. If that fails, Python fails, too, and says so."""
    now = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
    if not all(stream is before for stream, before in zip(now, streams * 2)):
        return False
    for stream in streams:
        stream.flush()
    return True


def goes_unseen(objects):
    """Returns what tells whether one of these objects does nothing that is seen when it goes."""
    weakref = unseen("_weakref")
    kinds = set(map(type, objects))
    finalized = {kind for kind in kinds if has_finalizer(kind)}
    classes = {kind for kind in kinds if issubclass(kind, type)}
    references = {kind for kind in kinds if issubclass(kind, weakref.ref)}
    finalized.update((weakref.ProxyType, weakref.CallableProxyType))  # they do not tell what they call
    binary = getattr(sys.__stdin__, "buffer", None)
    function = type(has_finalizer)
    ours = {id(stream) for stream in (sys.__stdin__, binary, getattr(binary, "raw", None))}

    def tell(one):
        kind = type(one)
        if kind in finalized:
            return id(one) in ours
        if kind in classes:
            return not has_finalizer(one)
        if kind in references and one.__callback__ is not None:
            called = getattr(one.__callback__, "__func__", one.__callback__)
            if type(called) is function:
                name = called.__globals__.get("__name__")
                return isinstance(name, str) and is_plain(name)
            return type(called) is type(len) and called.__name__ == "_destroy"  # that of abstract classes
        return True

    return tell


def has_finalizer(kind):
    """Tells whether a class has one, or can call what is not Python."""
    return any("__del__" in base.__dict__ or base.__module__ == "_ctypes" for base in kind.__mro__)


def refuse(reason):
    """Says why the modules cannot be imported, and ends."""
    import json

    os.write(4, json.dumps({"event": "reply", "error": reason[:1000]}).encode() + b"\n")
    os._exit(1)


def looked_at():
    """The state of where Python finds modules. When it has changed, a new interpreter finds others."""
    import site

    state = []
    for place in sys.path + ([site.USER_SITE] if site.ENABLE_USER_SITE else []):
        try:
            s = os.stat(place)
            state.append((place, s.st_dev, s.st_ino, s.st_mtime_ns))
        except OSError:
            state.append((place,))
    return state


def unseen(name):
    """Imports a module that the program does not find loaded. It is kept, as removing it takes the program's time."""
    if name in sys.modules:
        return sys.modules[name]
    if name not in kept:
        kept[name] = __import__(name)
        del sys.modules[name]
    return kept[name]


def dumpable():
    """Returns what says whether others of this user may look into this process. Programs share its Landlock
    domain, which keeps them apart otherwise."""
    ctypes = unseen("_ctypes")
    prctl = ctypes.dlsym(ctypes.dlopen(None, 0), "prctl")

    def choose(value):
        if ctypes.call_function(prctl, (4, value, 0, 0, 0)):  # PR_SET_DUMPABLE
            raise OSError("prctl")

    choose(0)
    return choose


def fork():
    """Forks what it is asked for on descriptor 3, and returns in that. The next one is there before it
    is asked for: it takes the request itself."""
    _socket = unseen("_socket")
    requests = _socket.socket(1, 5, 0, 3)  # AF_UNIX, SOCK_SEQPACKET
    ready = b'{"event":"ready"}\n'
    memory = writable()
    while True:
        answer, tell = os.pipe()
        begin, begun = os.pipe()
        child = try_fork()
        if child == 0:
            program = try_fork()
            if program == 0:
                unshare(memory)
                random = sys.modules.get("numpy.random")
                if random is not None:
                    random.seed()  # Python's own does so by itself
                descriptors = receive(requests)
                os.write(begun, b"x")
                requests.detach()
                os.setsid()
                for number, descriptor in enumerate(descriptors):
                    os.dup2(descriptor, number)
                for descriptor in descriptors + [answer, tell, begin, begun]:
                    os.close(descriptor)
                return
            os.close(begun)
            if not program:
                os._exit(2)
            os.write(tell, b"%d" % program)
            # With the end of this one, the program becomes a child of the process above, which sees its end.
            os._exit(0 if os.read(begin, 1) else 1)
        for descriptor in tell, begin, begun:
            os.close(descriptor)
        pid, status = b"0", 2 << 8
        if child:
            pid = os.read(answer, 16)
        os.write(4, ready)
        ready = b""
        if child:
            status = os.waitpid(child, 0)[1]
        os.close(answer)
        if status == 2 << 8:
            pid = b"0"
            for descriptor in receive(requests):
                os.close(descriptor)
        elif status:
            os._exit(1)  # the program was killed before it was one
        requests.send(pid)
        settle(requests, int(pid))


def settle(requests, program):
    """Waits until a program has ended, which would pay for the next one's fork, or until the next one is asked for. Most
    sandboxes have one program and are closed at its end, so they get some time for that."""
    select = unseen("select")
    waiting = select.poll()
    waiting.register(requests, select.POLLIN)
    try:
        ended = os.pidfd_open(program)
    except (AttributeError, OSError):
        return  # it has ended, or Python or the kernel is too old
    waiting.register(ended, select.POLLIN)
    asked = any(descriptor != ended for descriptor, event in waiting.poll())
    waiting.unregister(ended)
    os.close(ended)
    if not asked:
        waiting.poll(5)  # milliseconds


def writable():
    """Returns the addresses of the memory that only this process writes to, if it is little: the interpreter has
    imported little, and that can be seen."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            fields = [line.split(None, 2) for line in maps]
    except OSError:  # the sandbox has no /proc of its own
        return []
    ranges = [[int(address, 16) for address in f[0].split(b"-")] for f in fields if f[1] == b"rw-p"]
    return ranges if sum(end - start for start, end in ranges) <= 16 << 20 else []


def unshare(ranges):
    """Copies memory that this process shares with the one that forked it. Otherwise, the program waits for that at
    each page that it writes to, which is most of an interpreter that has imported little."""
    if not ranges:
        return
    ctypes = unseen("_ctypes")

    class Pointer(ctypes._SimpleCData):
        _type_ = "P"

    madvise = ctypes.dlsym(ctypes.dlopen(None, 0), "madvise")
    for start, end in ranges:
        ctypes.call_function(madvise, (Pointer(start), end - start, 23))  # MADV_POPULATE_WRITE, since Linux 5.14
    del Pointer
    unseen("gc").collect()  # otherwise the program finds the class


def receive(requests):
    """Waits for the descriptors of a program."""
    return receive_message(requests, 1, 64)[1]


def receive_message(requests, size, ancillary_size):
    message, ancillary, flags, address = requests.recvmsg(size, ancillary_size)
    if not message:
        os._exit(1)  # the other end has gone
    data = ancillary[0][2]
    return message, [int.from_bytes(data[i : i + 4], sys.byteorder) for i in range(0, len(data), 4)]


def enter():
    """Forks what it is asked for on descriptor 3 into another sandbox, and returns in that, restricted as that
    sandbox's processes are. Until then it is one that this process's user may do anything to, and does only this.
    The next one is there before it is asked for: it takes the request itself."""
    ctypes, _socket, array, resource = unseen("_ctypes"), unseen("_socket"), unseen("array"), unseen("resource")
    why = shared()
    if why:
        refuse(why)
    libc = ctypes.dlopen(None, 0)

    def call(name, *args):
        if ctypes.call_function(ctypes.dlsym(libc, name), args):
            raise OSError(name)

    global unlike
    unlike = interpreter = os.getpid()
    requests = _socket.socket(1, 5, 0, 3)  # AF_UNIX, SOCK_SEQPACKET
    os.write(4, b'{"event":"ready"}\n')
    while True:
        begin, begun = os.pipe()
        mover = os.fork()
        if mover == 0:
            break
        os.close(begun)
        status = os.waitpid(mover, 0)[1]
        if not os.read(begin, 1):
            os._exit(1)  # it was killed before it was asked for anything
        os.close(begin)
        requests.send(b"%d" % (status != 0))

    call("prctl", 1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, else it would take a request that the other one does not answer
    if os.getppid() != interpreter:
        os._exit(1)
    message, descriptors = receive_message(requests, 1 << 16, 1024)
    os.write(begun, b"x")
    for descriptor in begin, begun:
        os.close(descriptor)
    requests.detach()
    request = literal(message)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    standard, status, others = descriptors[:5], descriptors[5], descriptors[6:]
    ruleset = others.pop(0) if request["landlock"] else -1
    for group in others[request["namespaces"] :]:
        os.write(group, b"0")
    for namespace in others[: request["namespaces"]]:
        call("setns", namespace, 0)
    if os.fork():
        os._exit(0)
    parent = os.getpid()
    ours, theirs = _socket.socketpair()
    child = try_fork()
    if child is None:
        os._exit(1)
    if child:
        if request["own_uid"]:
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
        for target, descriptor in enumerate([standard[0]] * 3 + [status, theirs.fileno()]):
            os.dup2(descriptor, target)
        os.closerange(5, os.sysconf("SC_OPEN_MAX"))
        call("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
        call("prctl", 47, 4, 0, 0, 0)  # PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL
        call("capset", (0x20080522).to_bytes(4, sys.byteorder) + bytes(4), bytes(24))
        call("prctl", 36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        sys.modules["resource"] = resource  # os.wait4 imports it
        reap(child)
    theirs.close()
    os.setsid()
    for capability in range(64):
        if ctypes.call_function(ctypes.dlsym(libc, "prctl"), (24, capability, 0, 0, 0)):  # PR_CAPBSET_DROP
            break
    call("prctl", 47, 4, 0, 0, 0)  # PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL
    if request["own_uid"]:
        os.setgroups([])
    os.setresgid(request["gid"], request["gid"], request["gid"])
    os.setresuid(request["uid"], request["uid"], request["uid"])
    for resource, value in request["rlimits"]:
        call("setrlimit", resource, value.to_bytes(8, sys.byteorder) * 2)
    call("capset", (0x20080522).to_bytes(4, sys.byteorder) + bytes(4), bytes(24))
    call("prctl", 1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG
    call("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    if not ours.recv(1) or os.getppid() != parent:
        os._exit(1)
    os.chdir(request["dir"])
    if ruleset >= 0:
        call("syscall", 446, ruleset, 0)  # landlock_restrict_self
    code = array.array("B", bytes.fromhex(request["seccomp"]))
    if code:
        address, size = code.buffer_info()
        program = array.array("Q", [size // 8, address])
        call("prctl", 22, 2, program.tobytes(), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    ours.send(b"x")
    ours.detach()
    for target, descriptor in enumerate(standard):
        os.dup2(descriptor, target)
    os.closerange(5, os.sysconf("SC_OPEN_MAX"))
    # Here, directories may be found that were not there; the others are those of before unless their times are other ones.
    for path in [path for path, finder in sys.path_importer_cache.items() if finder is None]:
        del sys.path_importer_cache[path]


def reap(program):
    """Is the parent of a program, and reports what ends on descriptor 3, as the agent's subreapers do. It looks at
    nothing but the kernel's answers. On descriptor 4 the program is told that it may go on, and tells that it is restricted."""

    def report(kind, arg=0, value=0, cpu=0, rss=0):
        fields = (kind, 4), (arg, 4), (value, 4), (0, 4), (cpu, 8), (rss, 8)
        os.write(3, b"".join(number.to_bytes(size, sys.byteorder) for number, size in fields))

    os.write(4, b"x")
    if not os.read(4, 1):
        os._exit(1)
    os.close(4)
    started, ended, reaped, empty = 1, 3, 4, 5
    report(started, program, os.getpid())
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0x40000000)  # __WALL
        except ChildProcessError:
            report(empty)
            os._exit(0)
        report(ended if pid == program else reaped, pid, status, round((usage.ru_utime + usage.ru_stime) * 1e6), usage.ru_maxrss << 10)
        if pid == program:
            program = 0  # another process may get its pid


def shared():
    """Returns what of this process every sandbox would share that it is forked into, if there is something."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            if line.split()[1][1::2] == "ws":
                return "a module has mapped memory that all sandboxes would share: " + line.split(None, 5)[-1].strip()
    this = os.stat("/proc/self/fd").st_ino
    with os.scandir("/proc/self/fd") as entries:
        for entry in entries:
            if int(entry.name) > 4 and os.stat(entry.path).st_ino != this:
                return "a module has left a file open that all sandboxes would share: " + os.readlink(entry.path)


kept = {}  # by name
main, mains = None, []  # a reference to the program's main module, and the names of that
unlike = 0  # the pid of a process in another sandbox that this one was forked from


def try_fork():
    """Forks, and returns None where that cannot be done. What tells by its pid that a process was forked, as
    OpenSSL's random numbers do, would not see it if its pid were the same as that of one in another sandbox."""
    while True:
        try:
            child = os.fork()
        except OSError:
            return None
        if (child or os.getpid()) != unlike:
            return child
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


def become(loaded, state, choose_dumpable):
    """Becomes the program of the request that comes on descriptor 3. Returns whether that keeps
    the descriptors."""
    choose_dumpable(1)
    # What is frozen is never collected, and what a program's names refer to must be.
    frozen = sys.modules["__main__"]
    program = type(sys)("__main__")
    program.__dict__.update(frozen.__dict__)
    for name in mains:
        sys.modules[name] = program
    with open(3, "rb", closefd=False) as requests:
        request = literal(requests.readline())
    beside = os.listdir(os.path.dirname(request["file"])) if loaded else []
    if any(name.partition(".")[0] in loaded for name in beside) or looked_at() != state:
        os._exit(1)
    if request["dir"] != os.getcwd():
        if not all(map(os.path.isabs, rest)):
            os._exit(1)  # what is relative in sys.path belongs to the directory before
        os.chdir(request["dir"])
    for name, value in request.get("env", {}).items():
        os.environb[name.encode()] = value.encode()
    args = request.get("args", [])
    if args:
        sys.argv += args
        getattr(sys, "orig_argv", []).extend(args)
    if request.get("input"):
        # Python has looked at what its standard input is, which was empty then.
        import io

        before = sys.stdin
        binary = io.open(0, "rb", closefd=False)
        binary.raw.name = "<stdin>"
        sys.stdin = io.TextIOWrapper(binary, before.encoding, before.errors, "\n", before.line_buffering)
        sys.stdin.mode = "r"
        sys.__stdin__ = sys.stdin
    code = request.get("code", "").encode()
    with open(request["file"], "wb") as file:
        file.write(code)
    os.utime(request["touch"])
    support = request["support"]
    own["SUPPORT"] = support
    os.putenv("PYTHONPATH", os.pathsep.join([support] + rest))
    if "llmsandbox_capture.store" in sys.modules:
        sys.modules["llmsandbox_capture"].__path__[:] = [support + "/capture.zip/llmsandbox_capture"]
        sys.modules["llmsandbox_capture.store"].begin(support)
    if b"__cached__" not in code:  # else it may remove the name itself
        global main
        main = unseen("_weakref").ref(program)
    return request.get("keep")


def ahead(modules, enters):
    try:
        loaded = load(modules, enters)
        choose_dumpable = dumpable()
        if enters:
            enter()
        state = looked_at()
        fork()
        keep = become(loaded, state, choose_dumpable)
        os.write(4, b'{"event":"begun"}\n')
        if not keep:
            os.close(3)
            os.close(4)
    except BaseException:
        os._exit(1)  # the code is run in another interpreter
