# One end of a probe of the network, for images with python3. probe.pl is the same for
# images without; doc.go says what it is called with, and what it prints.
import select, socket, sys, time


def serve(token, port):
    servers = []
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            s = socket.socket(family, socket.SOCK_STREAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.bind((address, port))
            s.listen(16)
        except OSError:
            continue  # the pod has no addresses of this family
        servers.append(s)
    if not servers:
        sys.exit("cannot listen")
    while True:
        for s in select.select(servers, [], [])[0]:
            try:
                c, _ = s.accept()
                c.sendall(token)
                c.close()
            except OSError:
                pass  # the caller went away


def reached(token, port, address):
    try:
        with socket.create_connection((address, port), 1) as c:
            c.settimeout(1)
            said = b""
            while len(said) < len(token):
                more = c.recv(64)
                if not more:
                    break
                said += more
            return said == token
    except OSError:
        return False


def must(token, port, address, period, patience):
    start = time.monotonic()
    while not reached(token, port, address):
        if time.monotonic() - start > patience:
            return "blocked", time.monotonic() - start
        time.sleep(period / 10)
    return "reached", time.monotonic() - start


def cut(token, port, address, period, patience):
    start, last, failures = time.monotonic(), 0, 0
    while failures < 5:
        begin = time.monotonic()
        if reached(token, port, address):
            failures, last = 0, time.monotonic() - start
            if last > patience:
                return "reached", last
            time.sleep(period / 10)
        else:
            failures += 1
            time.sleep(max(0, period - (time.monotonic() - begin)))
    return "blocked", last


def main(mode, token, port, *rest):
    token, port = token.encode(), int(port)
    if mode == "serve":
        serve(token, port)
    if mode == "ready":
        sys.exit(0 if reached(token, port, "127.0.0.1") else 1)
    period, patience = (int(ms) / 1000 for ms in rest[:2])
    for step in rest[2:]:
        kind, address = step.split("=", 1)
        outcome, took = {"must": must, "cut": cut}[kind](token, port, address, period, patience)
        print(kind, address, outcome, int(took * 1000), flush=True)


main(*sys.argv[1:])
