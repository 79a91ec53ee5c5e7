# What only questions need.

# __k_list makes a JSON list of lines.
__k_list() {
  local line list=''
  while IFS= builtin read -r line; do
    [[ $line ]] || continue
    __k_json "$line"
    list+=",$REPLY"
  done <<<"$1"
  REPLY="[${list#,}]"
}

__k_complete() {
  local code before word
  __k_field cursor; local cursor=${REPLY:-0}
  __k_field code64; __k_decode "$REPLY"; code=$REPLY
  before=${code:0:cursor}
  word=${before##*[$' \t\n;|&()<>="`\'']}
  local first=${before%"$word"} found prefix='' command='(^|[;|&(])[[:space:]]*$'
  case $word in
    '$'*) prefix=${word%%[A-Za-z0-9_]*}; found=$(compgen -P "$prefix" -v -- "${word#"$prefix"}") ;;
    */*) found=$(compgen -f -- "$word") ;;
    *)
      if [[ $first =~ $command ]]; then found=$(compgen -A function -abck -- "$word"); else found=$(compgen -f -- "$word"); fi
      ;;
  esac
  found=$(LC_ALL=C sort -u <<<"$found" | grep -v '^__k_' | head -n 1000)
  __k_list "$found"
  __k_send "{\"event\":\"reply\",\"id\":$1,\"matches\":$REPLY,\"start\":$((${#before} - ${#word})),\"end\":$cursor}"
}

__k_inspect() {
  local code
  __k_field cursor; local cursor=${REPLY:-0}
  __k_field code64; __k_decode "$REPLY"; code=$REPLY
  local before=${code:0:cursor} after=${code:cursor}
  local word="${before##*[^A-Za-z0-9_-]}${after%%[^A-Za-z0-9_-]*}" text=''
  if [[ $word ]]; then
    if declare -p -- "$word" &>/dev/null; then
      text=$(declare -p -- "$word")
    elif type -- "$word" &>/dev/null; then
      text=$(type -- "$word"; [[ $(type -t -- "$word") != builtin && $(type -t -- "$word") != keyword ]] || help -- "$word")
    fi
  fi
  __k_json "${text:0:100000}"
  __k_send "{\"event\":\"reply\",\"id\":$1,\"text\":$REPLY}"
}

# __k_own lists what cells have defined, of the names that compgen gives with $1.
__k_own() {
  local __k_name
  while IFS= builtin read -r __k_name; do
    case $__k_name in __k_*|_|REPLY|PIPESTATUS|BASH_*|FUNCNAME|LINENO|RANDOM|SRANDOM|HIST*|COLUMNS|LINES|SECONDS|EPOCH*|OPTARG) continue ;; esac
    [[ $__k_names == *$'\n'"$__k_name"$'\n'* ]] || printf '%s\n' "$__k_name"
  done < <(compgen "${@}")
}

__k_variables() {
  local __k_reply=$1 __k_name __k_kind __k_value __k_list=''
  while IFS= builtin read -r __k_name; do
    __k_kind=$(declare -p -- "$__k_name" 2>/dev/null) || continue
    __k_value=${__k_kind#*=}
    case $__k_kind in
      'declare -a'*) __k_kind=array ;;
      'declare -A'*) __k_kind='associative array' ;;
      'declare -i'*|'declare --i'*) __k_kind=integer ;;
      *) __k_kind=string __k_value=${!__k_name-} ;;
    esac
    __k_json "${__k_value:0:200}"; __k_value=$REPLY
    __k_list+=",{\"name\":\"$__k_name\",\"type\":\"$__k_kind\",\"value\":$__k_value}"
  done < <(__k_own -v)
  while IFS= builtin read -r __k_name; do
    __k_json "$__k_name"
    __k_list+=",{\"name\":$REPLY,\"type\":\"function\",\"value\":\"\"}"
  done < <(__k_own -A function)
  __k_send "{\"event\":\"reply\",\"id\":$__k_reply,\"variables\":[${__k_list#,}]}"
}

__k_reset() {
  local __k_name
  while IFS= builtin read -r __k_name; do unset -v "$__k_name" 2>/dev/null; done < <(__k_own -v)
  while IFS= builtin read -r __k_name; do unset -f "$__k_name" 2>/dev/null; done < <(__k_own -A function)
  builtin unalias -a
  __k_send "{\"event\":\"reply\",\"id\":$1}"
}
