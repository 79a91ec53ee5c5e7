#!/bin/sh
# Makes what the virtual machines boot, once, and prints the folder it is kept in:
#   vmlinuz      Debian's cloud kernel, whose control groups are version 2 only
#   debian.ext4  a minimal Debian with systemd, python3 and a lingering user alice
# Exits with 77, the reason on stderr, where that cannot be done.
# VM_CACHE: the folder; by default one in the caller's cache folder.
set -eu
skip() { echo "skip: $1" >&2; exit 77; }
PATH=$PATH:/usr/sbin:/sbin
cache=${VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/llmsandbox-vm}
image=$cache/debian-12-$(cksum <"$0" | cut -d ' ' -f 1) # another script, another image
if [ -e "$image/debian.ext4" ] && [ -e "$image/vmlinuz" ]; then
	echo "$image"
	exit
fi
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ -e "$image/debian.ext4" ]; then # made while we waited
	echo "$image"
	exit
fi
[ "$(id -u)" = 0 ] || skip "the image of the virtual machine is made as root: run test/vm/image.sh as root with VM_CACHE=$cache"
for tool in apt-get mmdebstrap mke2fs; do
	command -v $tool >/dev/null || skip "$tool is missing: on Debian install mmdebstrap and e2fsprogs"
done
work=$(mktemp -d "$cache/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "making the virtual machine's image in $image" >&2

chmod 755 "$work" # apt's own user reads it
package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/{print $2; exit}')
[ -n "$package" ] || skip "no package linux-image-cloud-amd64: run apt-get update; on amd64 only"
(cd "$work" && apt-get download "$package" >&2 && dpkg -x ./*.deb kernel) || skip "the kernel $package cannot be fetched"

root=$work/root
mmdebstrap --quiet --variant=minbase --format=directory \
	--include=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,python3,uidmap,kmod \
	bookworm "$root" >&2 || skip "mmdebstrap cannot make a Debian"
mkdir -p "$root/payload" "$root/usr/lib/vm" "$root/var/lib/systemd/linger"
for module in overlay loop; do
	find "$work/kernel/lib/modules" -name "$module.ko" -exec cp {} "$root/usr/lib/vm/" \;
done
chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash alice
touch "$root/var/lib/systemd/linger/alice"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"

# The first process of a machine without systemd.
cat >"$root/sbin/vm-init" <<'INIT'
#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t devpts pts /dev/pts
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
/usr/lib/vm/payload
INIT
# What both kinds of machine run: the second disk.
cat >"$root/usr/lib/vm/payload" <<'PAYLOAD'
#!/bin/sh
exec </dev/null >/dev/ttyS0 2>&1
for m in /usr/lib/vm/*.ko; do insmod "$m"; done
fallocate -l 512M /swap && chmod 600 /swap && mkswap -q /swap && swapon /swap # which no sandbox may use
while [ ! -b /dev/nvme0n2 ]; do sleep 0.05; done # found in its own time
mount -t ext4 -o ro /dev/nvme0n2 /payload
cd /tmp
sh /payload/main
echo "vm-exit-code: $?"
poweroff -ff
PAYLOAD
chmod 755 "$root/sbin/vm-init" "$root/usr/lib/vm/payload"
cat >"$root/etc/systemd/system/payload.service" <<'UNIT'
[Unit]
After=systemd-logind.service dbus.service systemd-user-sessions.service user@1000.service
Wants=systemd-logind.service user@1000.service
[Service]
Type=oneshot
ExecStart=/usr/lib/vm/payload
UNIT
units=$root/etc/systemd/system
mkdir -p "$units/multi-user.target.wants"
ln -s ../payload.service "$units/multi-user.target.wants/"
# What a machine of one test does not need, and an emulated one is slow at.
for unit in getty@tty1.service serial-getty@ttyS0.service systemd-timesyncd.service systemd-udevd.service systemd-udev-trigger.service \
	systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-journal-flush.service systemd-random-seed.service \
	systemd-update-utmp.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer; do
	ln -sf /dev/null "$units/$unit"
done
mke2fs -q -t ext4 -O ^has_journal -d "$root" "$work/debian.ext4" 3G >&2

mkdir -p "$image"
cp "$work"/kernel/boot/vmlinuz-* "$image/vmlinuz"
mv "$work/debian.ext4" "$image/debian.ext4"
echo "$image"
