# Sourced by the scripts here: which cluster it is about, and where its things are.
# shellcheck shell=bash disable=SC2034
die() { printf 'cluster: %s\n' "$*" >&2; exit 1; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=${CLUSTER:-dev} # clusters of different names run side by side
[[ $cluster =~ ^[a-z][a-z0-9]{0,7}$ ]] || die "CLUSTER=$cluster: a name has 1 to 8 of a-z and 0-9, and begins with a letter"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/llmsandbox-cluster
kept=$cache/images/$cluster # containerd's store, which outlives the cluster
run=$cache/run/$cluster     # all else: it goes with the cluster
group=llmsandbox-cluster-$cluster # the control group of its pods
link=lsb-$cluster           # the machine's end of the link to the node
node=node1

# The name decides the addresses: /30 for the link, /24 for the pods.
number=$(($(cksum <<<"$cluster" | cut -d' ' -f1) % 250))
node_ip=10.98.$number.1 host_ip=10.98.$number.2
pod_net=10.97.$number.0/24
server=https://$node_ip:6443

# A process of the machine, and when it started: an id alone may be another's by now.
started() { local s; s=$(<"/proc/$1/stat") 2>/dev/null || return 1; s=${s##*) }; set -- $s; echo "${20}"; }
# init is the first process of the cluster's own pid namespace, if it runs.
init() {
  local pid at
  read -r pid at 2>/dev/null <"$run/init" || return 1
  [ "$(started "$pid" 2>/dev/null)" = "$at" ] && echo "$pid"
}
# within runs a program inside the node's namespaces.
within() {
  local pid
  pid=$(init) || die "no cluster $cluster runs here: start it with make cluster-up"
  nsenter -t "$pid" -m -n -p -- "$@"
}

containerd=$run/containerd.sock
ctr() { command ctr -a "$containerd" -n k8s.io "$@"; }
