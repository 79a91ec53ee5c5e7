#!/bin/sh
# Runs static programs, one after the other, in one emulated machine that has cgroup v2 only:
#   test/vm/run.sh root|system|session|service|delegated PROGRAM[,PROGRAM...] [ARGS...]
# root       as root, without systemd
# system     as root, in a service of systemd's
# session    as the ordinary user alice, in a login session of systemd's
# service    as alice, in a service of her own systemd (systemd-run --user)
# delegated  as alice, in a system service with User=alice and Delegate=yes
# Prints the console; exits with the exit code of the last program that failed, else 0;
# with 77 where the machine cannot be made (the reason is on stderr), with 125 when it
# gave no code.
# VM_FILES: files separated by commas that are beside the programs, in /payload.
# VM_ENV: NAME=VALUE words set for the program. VM_MEMORY: MiB. VM_TIMEOUT: seconds.
set -eu
skip() { echo "skip: $1" >&2; exit 77; }
[ $# -ge 2 ] || { sed -n '2,3s/^# *//p' "$0" >&2; exit 2; }
mode=$1 programs=$2
shift 2
PATH=$PATH:/usr/sbin:/sbin
for tool in qemu-system-x86_64 mke2fs; do
	command -v $tool >/dev/null || skip "$tool is missing: on Debian install qemu-system-x86 and e2fsprogs"
done
image=$("$(dirname "$0")/image.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/payload"
quote() { printf "'%s' " "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
IFS=,
for file in ${VM_FILES:-}; do cp "$file" "$work/payload/"; done
for program in $programs; do
	name=$(basename "$program")
	cp "$program" "$work/payload/$name"
	{
		echo "export LLMSANDBOX_REQUIRE=1 ${VM_ENV:-}"
		# In its own place: another process in its control group is one too many.
		printf 'exec /payload/%s ' "$name"
		for arg in "$@"; do quote "$arg"; done
	} >"$work/payload/$name.command"
done
unset IFS
init=/lib/systemd/systemd
case $mode in
root) init=/sbin/vm-init start='sh $command' ;;
system) start='systemd-run --quiet --wait --pipe --working-directory=/tmp sh $command' ;;
session) start='runuser -l alice -c "cd /tmp; exec sh $command"' ;;
service) start='runuser -l alice -c "systemd-run --user --quiet --wait --pipe --working-directory=/tmp sh $command"' ;;
delegated) start='systemd-run --quiet --wait --pipe --working-directory=/tmp --uid=alice -p Delegate=yes sh $command' ;;
*) echo "$0: no such mode: $mode" >&2; exit 2 ;;
esac
cat >"$work/payload/main" <<MAIN
code=0
for command in /payload/*.command; do
	$start || code=\$?
done
exit \$code
MAIN
size=$(($(du -sm "$work/payload" | cut -f 1) + 8))
mke2fs -q -t ext4 -O ^has_journal -d "$work/payload" "$work/payload.ext4" "${size}M" >&2
# Emulated even where there is KVM: in a nested machine that may hang or abort, and
# it is the kernel's answers that count here, not their speed. The kernel checks at boot
# that its timer ticks in time, and gives up on an emulated one under load.
timeout "${VM_TIMEOUT:-240}" qemu-system-x86_64 -machine accel=tcg -cpu Nehalem -smp 2 -m "${VM_MEMORY:-1536}" \
	-nographic -no-reboot -nic none -kernel "$image/vmlinuz" \
	-append "console=ttyS0 quiet no_timer_check panic=-1 root=/dev/nvme0n1 rootwait rw init=$init systemd.show_status=0" \
	-drive file="$image/debian.ext4",format=raw,if=none,id=root,snapshot=on \
	-drive file="$work/payload.ext4",format=raw,if=none,id=payload,readonly=on \
	-device nvme,serial=vm,id=nvme0 -device nvme-ns,drive=root,bus=nvme0,nsid=1 \
	-device nvme-ns,drive=payload,bus=nvme0,nsid=2 </dev/null | sed -u 's,\r,,g' | tee "$work/console" || true
code=$(sed -n 's/^vm-exit-code: //p' "$work/console" | tail -n 1)
exit "${code:-125}"
