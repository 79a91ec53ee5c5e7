# Copies the archives of a local directory into a library directory, after it has checked
# that the requested ones are among them.
#   local.sh DIR LOCAL PATTERN...
set -eu
dest=$1/jars local=$2
shift 2
mkdir "$dest"
for pattern; do
  if [ -z "$(find "$local" -type f -name "$pattern" | head -n 1)" ]; then
    echo "there is no $pattern in the folder" >&2
    exit 1
  fi
done
find "$local" -type f -name '*.jar' -exec cp {} "$dest/" ';'
