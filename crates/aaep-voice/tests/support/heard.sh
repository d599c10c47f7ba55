#!/bin/sh
# An output module for Speech Dispatcher that speaks into the file $HEARD_LOG, as fast as somebody who
# listens at $HEARD_WPM words a minute. A line for each begin, end and cut: time, kind, language, pitch,
# rate, punctuation, voice, text.
put() { printf '%s\n' "$@"; }
note() {
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(date +%s%3N)" "$1" "$language" "$pitch" \
        "$rate" "$punctuation" "$voice" "$text" >>"$HEARD_LOG"
}
block() { text=; while IFS= read -r line && [ "$line" != . ]; do text="$text${text:+ }${line#.}"; done; }
speaking=
begun="$HEARD_LOG.$$"
# Whoever is stopped before it began has not said that it stopped; the server would wait for ever.
halt() {
    [ -n "$speaking" ] || return
    if kill "$speaking" 2>/dev/null; then wait "$speaking" 2>/dev/null; fi
    [ -e "$begun" ] || put '701 BEGIN' '703 STOP'
    speaking=
}
while IFS= read -r command; do
    case $command in
    INIT) put '299-heard: speaks into a file' '299 OK LOADED SUCCESSFULLY' ;;
    AUDIO) put '207 OK RECEIVING AUDIO SETTINGS'; block; put '203 OK AUDIO INITIALIZED' ;;
    LOGLEVEL) put '207 OK RECEIVING LOGLEVEL SETTINGS'; block; put '203 OK LOG LEVEL SET' ;;
    SET) put '203 OK RECEIVING SETTINGS'
        while IFS= read -r line && [ "$line" != . ]; do
            value=${line#*=}
            case $line in
            language=*) language=$value ;;
            pitch=*) pitch=$value ;;
            rate=*) rate=$value ;;
            punctuation_mode=*) punctuation=$value ;;
            synthesis_voice=*) voice=$value ;;
            esac
        done
        put '203 OK SETTINGS RECEIVED' ;;
    SPEAK|CHAR|KEY|SOUND_ICON)
        put '202 OK RECEIVING MESSAGE'; block; put '200 OK SPEAKING'; halt; rm -f "$begun"
        (
            trap 'note cut; put "703 STOP"; exit' TERM
            : >"$begun"
            put '701 BEGIN'; note begin
            sleep "$(printf '%s\n' "$text" | sed 's/<[^>]*>//g' | wc -w | awk -v wpm="${HEARD_WPM:-300}" '{print $1*60/wpm}')" & wait $!
            trap '' TERM
            note end; put '702 END'
        ) &
        speaking=$! ;;
    STOP|PAUSE) halt ;;
    'LIST VOICES'*) put "200-heard	en	none" '200 OK VOICE LIST SENT' ;;
    DEBUG*) put '200 OK DEBUGGING SET' ;;
    QUIT) halt; rm -f "$begun"; put '210 OK QUIT'; exit ;;
    *) put '300 ERR UNKNOWN COMMAND' ;;
    esac
done
