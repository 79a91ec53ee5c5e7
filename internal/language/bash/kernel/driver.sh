# The driver of a Bash kernel: requests on descriptor 3, events on 4.
#
# It is read by an interactive shell, because only there an interrupt goes back to the
# prompt and leaves the state alone. The prompt never comes: PROMPT_COMMAND is the loop.
# Cells run in it outside of any function, so that what they declare is global. They see
# neither 3 nor 4: the shell keeps what it hides for a cell where no child gets it.

set +o history
unset HISTFILE
exec 2>&5 5>&- 50<&3 51>&4 52>&1 53>&2 3<&- 4>&-
__k_in=50 __k_out=51 __k_mark1=52 __k_mark2=53
__k_base64=$(type -P base64)
__k_id=0 __k_mark='' __k_code='' __k_stdin='' __k_count=0 __k_status=0 __k_asked=0 __k_interrupted=0
__k_dir=${BASH_SOURCE[0]%/*}

# __k_field takes the value of a string or number from a request, whose shape is known:
# no string in it has a quote.
__k_field() { [[ $__k_line =~ \"$1\":\"?([^\",}]*) ]] && REPLY=${BASH_REMATCH[1]} || REPLY=''; }

__k_decode() { REPLY=$("$__k_base64" -d <<<"$1" && printf x) && REPLY=${REPLY%x}; }

# __k_json makes a JSON string of a text.
__k_json() {
  local LC_ALL=C s=$1 i c
  s=${s//\\/\\\\} s=${s//\"/\\\"} s=${s//$'\n'/\\n} s=${s//$'\t'/\\t} s=${s//$'\r'/\\r}
  if [[ $s == *[$'\x01'-$'\x1f\x7f']* ]]; then
    for i in {1..31} 127; do
      printf -v c '\\x%x' "$i"
      printf -v c "$c"
      printf -v i '\\u%04x' "$i"
      s=${s//"$c"/"$i"}
    done
  fi
  REPLY="\"$s\""
}

# __k_next reads requests until there is a cell to run.
__k_next() {
  if ((__k_id)); then # the last one did not come to its end: an interrupt, or a break
    if ((__k_interrupted)); then __k_done interrupted; else __k_done ok; fi
  fi
  if ((__k_asked)); then
    __k_send "{\"event\":\"reply\",\"id\":$__k_asked,\"error\":\"it was interrupted\"}"
    __k_asked=0
  fi
  while IFS= builtin read -r __k_line <&"$__k_in"; do
    __k_field id
    local __k_request=$REPLY
    __k_field op
    case $REPLY in
      run)
        __k_field mark; __k_mark=$REPLY
        __k_field stdin; __k_stdin=$REPLY
        __k_field code64; __k_decode "$REPLY"; __k_code=$REPLY
        __k_id=$__k_request __k_interrupted=1
        ((++__k_count))
        if [[ $__k_stdin ]]; then __k_descriptors; __k_before=$REPLY; fi
        return
        ;;
      complete|inspect|variables|reset)
        [[ ${__k_loaded-} ]] || { source "$__k_dir/tools.sh"; __k_loaded=1; }
        __k_field op
        __k_asked=$__k_request
        __k_"$REPLY" "$__k_request"
        __k_asked=0
        ;;
    esac
  done
  builtin trap - EXIT
  builtin exit 0
}

# __k_done ends the cell: its marks, then its event.
__k_done() {
  local id=$__k_id fields=''
  __k_id=0
  case $1 in
    ok|interrupted) fields="\"status\":\"$1\"" ;;
    error)
      fields="\"status\":\"error\",\"exit_code\":$2,\"error\":{\"name\":\"exit code\",\"message\":\"$2\",\"traceback\":\"\"}" ;;
    exit) fields="\"status\":\"exit\",\"exit_code\":$2,\"state_lost\":true" ;;
  esac
  printf '\0%s' "$__k_mark" >&"$__k_mark1"
  printf '\0%s' "$__k_mark" >&"$__k_mark2"
  __k_send "{\"event\":\"done\",\"id\":$id,\"count\":$__k_count,$fields}"
}

__k_send() { printf '%s\n' "$1" >&"$__k_out"; }

# __k_ended is what follows a cell that came to its end.
__k_ended() {
  __k_status=$1 __k_interrupted=0
  if (($1 == 0)); then __k_done ok; else __k_done error "$1"; fi
}

__k_restore() { return "$__k_status"; }

# __k_left runs when a cell exits.
__k_left() {
  local status=$?
  ((__k_id)) || return
  __k_done exit "$status"
}

# __k_descriptors lists what the shell has open, from 10 on.
__k_descriptors() {
  local __k_fd
  REPLY=' '
  for ((__k_fd = 10; __k_fd < 100; __k_fd++)); do
    [[ ! -e /proc/self/fd/$__k_fd ]] || REPLY+="$__k_fd "
  done
}

# __k_hidden finds where the shell keeps what it hides for the cell: what is new since
# the cell began, in order. What the cell has opened itself comes after that.
__k_hidden() {
  local __k_fd
  __k_descriptors
  set -- $REPLY
  REPLY=()
  for __k_fd; do
    [[ $__k_before == *" $__k_fd "* ]] || REPLY+=("$__k_fd")
  done
}

# read asks the host where a cell has no other input.
read() {
  if [[ ! /proc/self/fd/0 -ef /dev/null || ! $__k_stdin || $* == *-u* ]]; then
    builtin read "$@"
    return
  fi
  local __k_arg __k_prev='' __k_prompt='' __k_password=false __k_line
  for __k_arg; do
    [[ $__k_prev == -*p ]] && __k_prompt=$__k_arg
    [[ $__k_arg == -*s* ]] && __k_password=true
    __k_prev=$__k_arg
  done
  local REPLY IFS=$' \t\n'
  __k_hidden
  local __k_from=${REPLY[0]} __k_to=${REPLY[1]}
  unset REPLY
  __k_json "$__k_prompt"
  printf '%s\n' "{\"event\":\"input\",\"id\":$__k_id,\"prompt\":$REPLY,\"password\":$__k_password}" >&"$__k_to"
  IFS= builtin read -r __k_line <&"$__k_from" || return 1
  __k_field eof
  [[ $REPLY == true ]] && return 1
  __k_field text64
  __k_decode "$REPLY"
  __k_line=$REPLY
  unset IFS REPLY
  builtin read "$@" <<<"$__k_line"
}

shopt -u checkwinsize
trap __k_left EXIT
PS1= PS2= __k_loop='while __k_next; do __k_restore; eval "$__k_code" 50<&- 51>&- 52>&- 53>&-; __k_ended "$?"; done; __k_interrupted=0; eval "$__k_loop"'
PROMPT_COMMAND=$__k_loop
__k_send "{\"event\":\"ready\",\"language\":\"bash\",\"version\":\"${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}\",\"flavor\":\"bash\"}"
__k_names=$'\n'$(compgen -v)$'\n'$(compgen -A function)$'\n'
