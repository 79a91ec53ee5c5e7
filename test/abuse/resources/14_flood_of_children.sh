for _ in 1 2 3 4; do
  (exec -a abuse-flood setsid yes) &
done
wait
