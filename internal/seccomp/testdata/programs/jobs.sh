set -euo pipefail
sleep 0.01 & wait $!
mkfifo p; (echo hi > p) & read -r x < p; [ "$x" = hi ]
diff <(seq 5) <(seq 5)
seq 100 | sort -rn | head -1 | grep -q 100 || true
cp -a p q; tar cf t.tar p; tar xf t.tar; touch f; chmod 755 f; ls -la > /dev/null; find . -type f | xargs ls > /dev/null
timeout 5 true; nice true; flock f true; ulimit -a > /dev/null; date > /dev/null; ps > /dev/null
echo works
