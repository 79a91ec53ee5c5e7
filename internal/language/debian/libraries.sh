# Unpacks packages, and what they need that is not in this place, into a folder: nothing
# is configured, no script of a package runs, and none of it needs to be root.
#   libraries.sh FOLDER SCRATCH LOCAL|- PACKAGE[=VERSION]...
set -eu
folder=$1 scratch=$2 local=$3
shift 3
mkdir -p "$scratch/state/lists/partial" "$scratch/cache/archives/partial"
if [ "$local" = - ]; then
  apt-get --quiet=2 --error-on=any update
  apt-get --quiet=1 --download-only --reinstall --no-remove install "$@"
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

mkdir -p "$folder/usr"
for deb in "$archives"/*.deb; do
  [ -e "$deb" ] || continue
  dpkg-deb --extract "$deb" "$folder"
  # What a program may have to be linked with. A static archive counts where there is
  # nothing shared of its name.
  dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -n 's#^.*/lib/\([^/]*-linux-gnu[^/]*/\)\{0,1\}lib\([A-Za-z0-9_+.-]*\)\.\(so\|a\)$#\3 \2#p' |
    case $(dpkg-deb --field "$deb" Package) in
      libc6-dev | libc-dev-bin | libstdc++-*-dev | libgcc-*-dev | lib*san*) cat >/dev/null ;;
      *) cat ;;
    esac >>"$scratch/link"
done
touch "$scratch/link"

# Older packages have files where the system has links into usr.
for name in bin sbin lib lib64; do
  if [ -d "$folder/$name" ] && [ ! -L "$folder/$name" ]; then
    mkdir -p "$folder/usr/$name"
    cp -a "$folder/$name/." "$folder/usr/$name/"
    rm -rf "${folder:?}/$name"
  fi
  [ ! -d "$folder/usr/$name" ] || ln -sfn "usr/$name" "$folder/$name"
done
# One name for the folders that are called by the architecture.
for dir in "$folder"/usr/lib/*-linux-gnu*; do
  [ ! -d "$dir" ] || ln -sfn "usr/lib/${dir##*/}" "$folder/arch-lib"
done
for dir in "$folder"/usr/include/*-linux-gnu*; do
  [ ! -d "$dir" ] || ln -sfn "usr/include/${dir##*/}" "$folder/arch-include"
done
# A link to what the place has already leads there.
find "$folder" -xtype l | while IFS= read -r link; do
  target=$(readlink "$link")
  case $target in
    /*) [ ! -e "$folder$target" ] || ln -sfn "$folder$target" "$link" ;;
    *)
      there=$(dirname "${link#"$folder"}")/$target
      [ ! -e "$there" ] || ln -sfn "$(realpath -ms "$there")" "$link"
      ;;
  esac
done
find "$folder/usr" -path '*/pkgconfig/*.pc' -type f -exec sed -i "s|^\([A-Za-z_]*\)=/usr|\1=$folder/usr|" {} +

{
  # Headers may lie in folders that only pkg-config knows of, where it is in this place.
  if command -v pkg-config >/dev/null; then
    find "$folder/usr" -path '*/pkgconfig/*.pc' | while IFS= read -r pc; do
      PKG_CONFIG_PATH=$folder/arch-lib/pkgconfig:$folder/usr/lib/pkgconfig:$folder/usr/share/pkgconfig \
        pkg-config --silence-errors --cflags-only-I "$(basename "$pc" .pc)" || true # it may need more than is asked for
    done | tr ' ' '\n' | grep "^-I$folder/" | sort -u || true # there is none
  fi
  echo "-Wl,--as-needed"
  sed -n 's|^so ||p' "$scratch/link" | sort -u | sed 's|^|-l|'
  sed -n 's|^a ||p' "$scratch/link" | sort -u | while IFS= read -r name; do
    grep -qxF "so $name" "$scratch/link" || echo "-l$name"
  done
} >"$folder/link"
