for path in """/proc/mounts /proc/self/mountinfo /proc/self/mountstats /proc/self/cgroup /proc/cmdline /proc/version /proc/partitions
    /proc/diskstats /proc/swaps /proc/modules /proc/net/dev /proc/net/tcp /proc/net/arp /proc/net/route /proc/driver
    /sys/class/dmi/id/product_serial /sys/class/dmi/id/product_uuid /sys/hypervisor/uuid""".split():
    try:
        with open(path) as f:
            print(os.path.basename(path), f.read())
    except OSError as e:
        print("closed:", errno.errorcode[e.errno], path)
print("end")
