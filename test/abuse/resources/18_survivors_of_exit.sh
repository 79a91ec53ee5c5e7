(exec -a abuse-survivor sleep 3600) &
setsid bash -c 'trap "" TERM HUP; exec -a abuse-survivor sleep 3600' &
nohup bash -c 'exec -a abuse-survivor sleep 3600' >/dev/null 2>&1 &
(setsid bash -c '(exec -a abuse-survivor sleep 3600) & disown' &)
sleep 0.2
echo done
