# Kill this process, the one that runs the test, its host or the campaign, once for each of some seeds.
parent() {
    while read -r key value; do
        [ "$key" = PPid: ] && echo "$value"
    done < "/proc/$1/status"
}
read -r seed _ < "$1"
if [ -n "$MARKS" ] && [ $((seed % 5)) = 0 ]; then
    case $((seed / 5 % 5)) in
        0) victim=host pid=$(parent $PPID) ;;
        1) victim=campaign pid=$(parent "$(parent $PPID)") ;;
        2) victim=child pid=$PPID ;;
        *) victim=command pid=$$ ;;
    esac
    # It sleeps until it is ended, too: no other test may begin.
    mkdir "$MARKS/$victim-$seed" 2> /dev/null && kill -s KILL "$pid" && sleep 60
fi
[ $((seed % 7)) != 3 ]
