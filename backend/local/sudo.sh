#!/bin/sh
# sudo for code that may become root of its sandbox: without a password, with the options that matter there.
fail() {
	echo "sudo: $1" >&2
	exit 1
}
# find looks for a program as a shell does, but for what shells have built in.
find() {
	program=$1
	case $1 in
	*/*) return ;;
	esac
	IFS=:
	for dir in $PATH /usr/local/sbin /usr/sbin /sbin; do
		program=$dir/$1
		[ -f "$program" ] && [ -x "$program" ] && unset IFS && return
	done
	fail "$1: command not found"
}
user=root shell=
while [ $# -gt 0 ]; do
	case $1 in
	--) shift && break ;;
	-u | --user) [ $# -gt 1 ] || fail "$1 needs a user" && user=$2 && shift ;;
	-u*) user=${1#-u} ;;
	--user=*) user=${1#--user=} ;;
	-i | -s | --login | --shell) shell=yes ;;
	-v | --validate | -K | -k) [ $# -gt 1 ] || exit 0 ;;
	--non-interactive | --preserve-env | --preserve-env=* | --set-home | --stdin | --reset-timestamp) ;;
	-*[!EHSnk]*) fail "the sandbox's sudo has no option $1" ;;
	-?*) ;;
	*=*) export "${1?}" ;;
	*) break ;;
	esac
	shift
done
if [ $# = 0 ]; then
	[ "$shell" ] || fail "what is to be run? Use: sudo [-u USER] COMMAND"
	set -- "${SHELL:-/bin/sh}"
fi
user=${user#"#"}
if [ "$user" = root ] || [ "$user" = 0 ]; then
	[ -d /root ] && HOME=/root
	export HOME USER=root LOGNAME=root
else
	if command -v setpriv >/dev/null; then
		set -- setpriv --reuid "$user" --regid "$(id -g "$user" 2>/dev/null || echo "$user")" --clear-groups -- "$@"
	else
		set -- su -s /bin/sh "$user" -c 'exec "$0" "$@"' "$@"
	fi
fi
find "$1"
shift
exec /run/sudo/as-root "$program" "$@"
