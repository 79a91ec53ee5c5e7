sleep 3600
