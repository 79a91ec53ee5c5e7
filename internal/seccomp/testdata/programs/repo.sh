set -euo pipefail
git init -q r; cd r; echo x > f; git add f
git -c user.name=a -c user.email=a@example.com commit -qm one
git gc -q; git clone -q . ../c; git -C ../c log --oneline > /dev/null
echo works
