#!/bin/sh
# An X server on the display of `softgen run`, and a client on it: xorg.sh COMMAND
run=$(mktemp -d)
cat > "$run/xorg.conf" <<'END'
Section "ServerFlags"
    Option "AutoAddDevices" "false"
    Option "AutoEnableDevices" "false"
    Option "AutoAddGPU" "false"
EndSection
Section "Device"
    Identifier "softgen"
    Driver "modesetting"
    Option "kmsdev" "/dev/dri/card0"
EndSection
END
exec 3> "$run/display"
Xorg -config "$run/xorg.conf" -novtswitch -sharevts -noreset -nolisten tcp -ac -logfile "$run/log" -displayfd 3 > "$run/said" 2>&1 &
server=$!
exec 3>&-
for _ in $(seq 300); do
    [ -s "$run/display" ] && break
    kill -0 $server 2> /dev/null || { tail -n 5 "$run/said"; rm -r "$run"; exit 1; }
    sleep 0.1
done
finish() { # at once, so that what the display shows stays
    kill -9 $server $client 2> /dev/null
    rm -r "$run"
    exit "$1"
}
trap 'finish 0' TERM
DISPLAY=:$(cat "$run/display") sh -c "$1" &
client=$!
wait $client
code=$?
sleep 0.3
finish $code
