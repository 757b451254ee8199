// How many steps the numbers in r2 take to reach 1, each channel on its own: halve what is even, else three times and one.
// Every channel leaves the loop when it is done; the others go round again.
//
//     softgen eu examples/collatz.asm --gpu kbl --set r2:d=1,2,3,6,7,9,18,27
//
// r2 holds the numbers, r3 the counts.
         mov (8|M0)                r3.0<1>:d      0:w
         cmp (8|M0)   (gt)f0.0     null<1>:d      r2.0<8;8,1>:d   1:w
(f0.0)   if (8|M0)                 DONE           DONE
AGAIN:
         and (8|M0)   (ne)f0.1     null<1>:d      r2.0<8;8,1>:d   1:w
         asr (8|M0)                r4.0<1>:d      r2.0<8;8,1>:d   1:w
         mul (8|M0)                r5.0<1>:d      r2.0<8;8,1>:d   3:w
         add (8|M0)                r5.0<1>:d      r5.0<8;8,1>:d   1:w
(f0.1)   sel (8|M0)                r2.0<1>:d      r5.0<8;8,1>:d   r4.0<8;8,1>:d
         add (8|M0)                r3.0<1>:d      r3.0<8;8,1>:d   1:w
         cmp (8|M0)   (gt)f0.0     null<1>:d      r2.0<8;8,1>:d   1:w
(f0.0)   while (8|M0)              AGAIN
DONE:
         endif (8|M0)              END
END:
