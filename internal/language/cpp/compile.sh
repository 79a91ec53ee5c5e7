# g++ calls this in place of its programs: sh compile.sh HEADER WORKDIR PROGRAM ARGUMENT...
# It compiles with a precompiled header, whose includes are among those that the program begins
# with, and links with the quicker linker. Only what succeeds without any message is taken. All
# else is done again without, so that its messages are what they always are.
header=$1 workdir=$2
shift 2
case ${1##*/} in
cc1plus)
	[ -r "$header.check" ] && [ -z "$CPATH$CPLUS_INCLUDE_PATH$DEPENDENCIES_OUTPUT$SUNPRO_DEPENDENCIES" ] && . "$header.check" &&
		said=$("$@" -Werror -Wfatal-errors -include "$header" 2>&1) && [ -z "$said" ] && exit
	;;
collect2)
	said=$("$@" -fuse-ld=gold 2>&1) && [ -z "$said" ] && exit
	;;
esac
exec "$@"
