# Copies the archives of a local folder into a library folder, once it has seen that those
# asked for are among them.
#   local.sh FOLDER LOCAL PATTERN...
set -eu
folder=$1/jars local=$2
shift 2
mkdir "$folder"
for pattern; do
  if [ -z "$(find "$local" -type f -name "$pattern" | head -n 1)" ]; then
    echo "there is no $pattern in the folder" >&2
    exit 1
  fi
done
find "$local" -type f -name '*.jar' -exec cp {} "$folder/" ';'
