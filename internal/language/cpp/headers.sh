# Precompiles lists of headers, of names parted by spaces, into a directory with a compiler:
# sh headers.sh DIRECTORY LIST... -- COMPILER OPTION... It notes by which names the compiler looks
# for what they include: a file of such a name in the working directory would be found first.
mkdir -p "$1" && cd "$1" || exit
shift
n=0
while [ "$1" != -- ]; do
	for name in $1; do echo "#include <$name>"; done >$n.h
	n=$((n + 1))
	shift
done
shift
for header in *.h; do
	"$@" -MD -MF "$header.d" -x c++-header "$header" -o "$header.gch" && {
		printf 'for name in'
		tr -s ' \\' '\n\n' <"$header.d" | sed -n 's|.*/include/||p' | tr / '\n' | sort -u | sed "s/.*/ '&'/" | tr -d '\n'
		echo '; do [ ! -e "$workdir/$name" ] || return 1; done'
	} >"$header.check" &
done
wait
rm -f ./*.d
