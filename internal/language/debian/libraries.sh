# Unpacks packages, and what they need that this system lacks, into a directory: nothing
# is configured, no script of a package runs, and none of it needs to be root.
#   libraries.sh DIR SCRATCH LOCAL|- PACKAGE[=VERSION]...
set -eu
dest=$1 scratch=$2 local=$3
shift 3
mkdir -p "$scratch/state/lists/partial" "$scratch/cache/archives/partial"
if [ "$local" = - ]; then
  apt-get --quiet=2 --error-on=any update
  # apt takes a name that it does not know for a pattern, or, with a plus or minus behind it, for an
  # instruction. What the compiler has of its own, such as libstdc++, is no package and need not be one.
  for wanted; do
    shift
    name=${wanted%%=*}
    if apt-cache --all-names pkgnames "$name" | grep -qxF -e "$name"; then
      set -- "$@" "$wanted"
      continue
    fi
    case $(g++ -print-file-name="$name.so" 2>/dev/null) in
      /*) continue ;;
    esac
    echo "there is no package $name" >&2
    exit 1
  done
  [ $# = 0 ] || apt-get --quiet=1 --download-only --reinstall --no-remove install "$@"
  archives=$scratch/cache/archives
else
  archives=$local
  for wanted; do
    found=
    for deb in "$local"/*.deb; do
      [ -e "$deb" ] || continue
      name=$(dpkg-deb --field "$deb" Package) version=$(dpkg-deb --field "$deb" Version)
      if [ "$wanted" = "$name" ] || [ "$wanted" = "$name=$version" ]; then found=1; fi
    done
    [ -n "$found" ] || { echo "there is no package $wanted in the folder" >&2; exit 1; }
  done
fi

mkdir -p "$dest/usr"
for deb in "$archives"/*.deb; do
  [ -e "$deb" ] || continue
  dpkg-deb --extract "$deb" "$dest"
  # Libraries that programs may link. A static archive counts where there is no shared
  # library of its name.
  dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -n 's#^.*/lib/\([^/]*-linux-gnu[^/]*/\)\{0,1\}lib\([A-Za-z0-9_+.-]*\)\.\(so\|a\)$#\3 \2#p' |
    case $(dpkg-deb --field "$deb" Package) in
      libc6-dev | libc-dev-bin | libstdc++-*-dev | libgcc-*-dev | lib*san*) cat >/dev/null ;;
      *) cat ;;
    esac >>"$scratch/link"
done
touch "$scratch/link"

# Older packages have files where the system has links into usr.
for name in bin sbin lib lib64; do
  if [ -d "$dest/$name" ] && [ ! -L "$dest/$name" ]; then
    mkdir -p "$dest/usr/$name"
    cp -a "$dest/$name/." "$dest/usr/$name/"
    rm -rf "${dest:?}/$name"
  fi
  [ ! -d "$dest/usr/$name" ] || ln -sfn "usr/$name" "$dest/$name"
done
# One name for the directories that are named after the architecture.
for dir in "$dest"/usr/lib/*-linux-gnu*; do
  [ ! -d "$dir" ] || ln -sfn "usr/lib/${dir##*/}" "$dest/arch-lib"
done
for dir in "$dest"/usr/include/*-linux-gnu*; do
  [ ! -d "$dir" ] || ln -sfn "usr/include/${dir##*/}" "$dest/arch-include"
done
# A link to a file that the system has already leads there.
find "$dest" -xtype l | while IFS= read -r link; do
  target=$(readlink "$link")
  case $target in
    /*) [ ! -e "$dest$target" ] || ln -sfn "$dest$target" "$link" ;;
    *)
      there=$(dirname "${link#"$dest"}")/$target
      [ ! -e "$there" ] || ln -sfn "$(realpath -ms "$there")" "$link"
      ;;
  esac
done
find "$dest/usr" -path '*/pkgconfig/*.pc' -type f -exec sed -i "s|^\([A-Za-z_]*\)=/usr|\1=$dest/usr|" {} +

{
  # Headers may be in directories that only pkg-config knows of, where it is installed.
  if command -v pkg-config >/dev/null; then
    find "$dest/usr" -path '*/pkgconfig/*.pc' | while IFS= read -r pc; do
      PKG_CONFIG_PATH=$dest/arch-lib/pkgconfig:$dest/usr/lib/pkgconfig:$dest/usr/share/pkgconfig \
        pkg-config --silence-errors --cflags-only-I "$(basename "$pc" .pc)" || true # it may need more than is asked for
    done | tr ' ' '\n' | grep "^-I$dest/" | sort -u || true # there is none
  fi
  echo "-Wl,--as-needed"
  sed -n 's|^so ||p' "$scratch/link" | sort -u | sed 's|^|-l|'
  sed -n 's|^a ||p' "$scratch/link" | sort -u | while IFS= read -r name; do
    grep -qxF "so $name" "$scratch/link" || echo "-l$name"
  done
} >"$dest/link"
