def create(directory):
    path = directory.rstrip("/") + "/abuse-file"
    open_for(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.unlink(path)

for directory in "/ /usr /usr/bin /usr/lib /usr/local /usr/local/bin /etc /bin /lib /lib64 /opt /dev /proc /sys /home /root /var /run /mnt /srv /boot".split():
    attempt("create in " + directory, lambda: create(directory))
for path in "/etc/passwd /etc/hosts /etc/resolv.conf /etc/ld.so.cache /bin/sh /usr/bin/env".split():
    attempt("write " + path, lambda: open_for(path, os.O_WRONLY))
    attempt("chmod " + path, lambda: os.chmod(path, os.stat(path).st_mode & 0o7777))
    attempt("times of " + path, lambda: os.utime(path))

def rename():
    os.rename("/etc", "/etc2")
    os.rename("/etc2", "/etc")

attempt("rename /etc", rename)
say("end", "end")
