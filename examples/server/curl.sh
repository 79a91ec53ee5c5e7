#!/bin/sh
# What main.go does, with curl. SANDBOX_URL and SANDBOX_KEY are the address and the key that llmsandbox serve prints.
set -eu
api() { curl --silent --show-error --fail-with-body -H "X-API-Key: $SANDBOX_KEY" "$@"; }
id() { sed -n 's/.*"id": *"\([^"]*\)".*/\1/p'; }
sandboxes=$SANDBOX_URL/v1/sandboxes
sandbox=$sandboxes/$(api "$sandboxes" --json '{"language": "python", "lifetime_seconds": 600}' | id)
trap 'api "$sandbox" -X DELETE' EXIT
printf 'month,total\nmay,20\njune,22\n' | api "$sandbox/files?path=sales.csv" -X PUT --data-binary @-
kernel=$sandbox/kernels/$(api "$sandbox/kernels" --json '{}' | id)
api "$kernel/cells" --json '{"code": "import csv; rows = list(csv.DictReader(open(\"sales.csv\")))"}' >/dev/null
api "$kernel/cells" --json '{"code": "sum(int(row[\"total\"]) for row in rows)"}'
