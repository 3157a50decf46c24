package realprograms

import "testing"

func TestMedia(t *testing.T) {
	t.Parallel()
	for _, w := range []work{
		{name: "ffmpeg", needs: []string{"ffmpeg"}, uses: []string{"ffmpeg"}, script: `
quiet() { ffmpeg -nostdin -v error -threads 4 -filter_threads 4 "$@"; }
exact='-fflags +bitexact -flags:v +bitexact -flags:a +bitexact -map_metadata -1'
seconds=$SCALE
quiet -f lavfi -i testsrc2=size=320x240:rate=25 -f lavfi -i sine=frequency=440:sample_rate=44100 -t $seconds \
  -c:v mpeg4 -q:v 4 -threads 4 -c:a aac $exact clip.mp4
quiet -i clip.mp4 -vf 'scale=160:120,hflip,eq=contrast=1.2,unsharp' -af atempo=1.5,volume=0.5 -c:v ffv1 -slices 4 -c:a pcm_s16le $exact clip.mkv
quiet -i clip.mkv -f framemd5 $exact -
quiet -f lavfi -i mandelbrot=size=200x150:rate=10 -t $seconds -c:v libx264 -preset veryfast -threads 4 -x264-params log=none $exact -f mpegts m.ts
quiet -i m.ts -vf 'select=not(mod(n\,5))' -fps_mode vfr $exact frame%02d.png
quiet -i clip.mp4 -filter_complex '[0:v]split=3[a][b][c];[a][b]hstack[d];[c]negate,scale=640:240[e];[d][e]vstack,format=yuv420p' -an -c:v mjpeg -threads 1 $exact both.avi
ffprobe -v error -show_streams -of json clip.mp4 | md5sum
quiet -i frame01.png -i /dev/null -f null - 2>/dev/null || echo "status $?"
`},
		{name: "imagemagick", needs: []string{"convert"}, uses: []string{"convert"}, script: `
nodate='-define png:exclude-chunks=date,time +set date:create +set date:modify +set date:timestamp'
export MAGICK_THREAD_LIMIT=4
convert -seed 7 -size $((400 * SCALE))x300 plasma:red-blue -blur 0x3 $nodate plasma.png
convert plasma.png -resize 60% -rotate 30 -sharpen 0x1 -colors 64 $nodate small.png
convert plasma.png -distort Arc 60 -modulate 110,90 -quality 85 -strip arc.jpg
convert plasma.png \( +clone -negate -flop \) -compose screen -composite -edge 2 $nodate edges.png
convert -size 200x100 gradient:black-white -duplicate 3 -loop 0 -delay 5 -strip moving.gif
identify plasma.png small.png arc.jpg moving.gif; compare -metric RMSE plasma.png edges.png null: 2>&1 || echo " status $?"
convert small.png -morphology Dilate Disk:3 -fx '(u+p{j,i})/2' txt:- | md5sum
convert nothing.png x.png || echo "status $?"
`, varies: []string{`[0-9.]+u [0-9:.]+$`, ` @ error/.*`}},
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.compareSettings(t)
		})
	}
}
