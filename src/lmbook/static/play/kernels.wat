;; Matrices of a GGUF file times vectors, eight products an instruction; kernels.js calls it.
;;
;; The memory begins with the value of every number of 16 bits as a float: the value of n
;; lies at 4 n. A matrix lies there as in its file: row after row, each of blocks of 32
;; numbers. A vector is cut into blocks as well, of 80 bytes: a scale and the sum of its
;; numbers (floats), eight bytes that nobody reads, and 32 integers of 16 bits. The results,
;; (tokens, rows), are floats. No function is called inside the innermost loops: some browsers do not
;; put its body in the call's place.
(module
  (import "page" "memory" (memory 1))

  ;; The sum of four floats.
  (func $total (param $four v128) (result f32)
    (f32.add
      (f32.add
        (f32x4.extract_lane 0 (local.get $four))
        (f32x4.extract_lane 1 (local.get $four)))
      (f32.add
        (f32x4.extract_lane 2 (local.get $four))
        (f32x4.extract_lane 3 (local.get $four)))))

  ;; Q4_1: a block is a scale, a minimum and 32 integers of four bits; byte i holds those of
  ;; the numbers i (its lower half) and i + 16.
  (func (export "Q4_1")
    (param $matrix i32) (param $rows i32) (param $blocks i32)
    (param $x i32) (param $tokens i32) (param $out i32)
    (local $row i32) (local $token i32) (local $at i32) (local $end i32) (local $with i32)
    (local $both v128) (local $low v128) (local $high v128) (local $sums v128)
    (local $least f32)
    (loop $each_row
      (local.set $token (i32.const 0))
      (local.set $with (local.get $x))
      (local.set $end
        (i32.add (local.get $matrix) (i32.mul (local.get $blocks) (i32.const 20))))
      (loop $each_token
        (local.set $at (local.get $matrix))
        (local.set $sums (v128.const f32x4 0 0 0 0))
        (local.set $least (f32.const 0))
        (loop $each_block
          (local.set $both (v128.load offset=4 (local.get $at)))
          (local.set $low
            (v128.and
              (local.get $both)
              (v128.const i32x4 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f)))
          (local.set $high (i8x16.shr_u (local.get $both) (i32.const 4)))
          (local.set $sums
            (f32x4.add
              (local.get $sums)
              (f32x4.mul
                (f32x4.convert_i32x4_s
                  (i32x4.add
                    (i32x4.add
                      (i32x4.dot_i16x8_s
                        (i16x8.extend_low_i8x16_u (local.get $low))
                        (v128.load offset=16 (local.get $with)))
                      (i32x4.dot_i16x8_s
                        (i16x8.extend_high_i8x16_u (local.get $low))
                        (v128.load offset=32 (local.get $with))))
                    (i32x4.add
                      (i32x4.dot_i16x8_s
                        (i16x8.extend_low_i8x16_u (local.get $high))
                        (v128.load offset=48 (local.get $with)))
                      (i32x4.dot_i16x8_s
                        (i16x8.extend_high_i8x16_u (local.get $high))
                        (v128.load offset=64 (local.get $with))))))
                (f32x4.splat
                  (f32.mul
                    (f32.load (i32.shl (i32.load16_u (local.get $at)) (i32.const 2)))
                    (f32.load (local.get $with)))))))
          (local.set $least
            (f32.add
              (local.get $least)
              (f32.mul
                (f32.load (i32.shl (i32.load16_u offset=2 (local.get $at)) (i32.const 2)))
                (f32.load offset=4 (local.get $with)))))
          (local.set $with (i32.add (local.get $with) (i32.const 80)))
          (local.set $at (i32.add (local.get $at) (i32.const 20)))
          (br_if $each_block (i32.lt_u (local.get $at) (local.get $end))))
        (f32.store
          (i32.add
            (local.get $out)
            (i32.shl
              (i32.add (i32.mul (local.get $token) (local.get $rows)) (local.get $row))
              (i32.const 2)))
          (f32.add (call $total (local.get $sums)) (local.get $least)))
        (local.set $token (i32.add (local.get $token) (i32.const 1)))
        (br_if $each_token (i32.lt_u (local.get $token) (local.get $tokens))))
      (local.set $matrix (local.get $end))
      (local.set $row (i32.add (local.get $row) (i32.const 1)))
      (br_if $each_row (i32.lt_u (local.get $row) (local.get $rows)))))

  ;; Q8_0: a block is a scale and 32 integers of eight bits.
  (func (export "Q8_0")
    (param $matrix i32) (param $rows i32) (param $blocks i32)
    (param $x i32) (param $tokens i32) (param $out i32)
    (local $row i32) (local $token i32) (local $at i32) (local $end i32) (local $with i32)
    (local $low v128) (local $high v128) (local $sums v128)
    (loop $each_row
      (local.set $token (i32.const 0))
      (local.set $with (local.get $x))
      (local.set $end
        (i32.add (local.get $matrix) (i32.mul (local.get $blocks) (i32.const 34))))
      (loop $each_token
        (local.set $at (local.get $matrix))
        (local.set $sums (v128.const f32x4 0 0 0 0))
        (loop $each_block
          (local.set $low (v128.load offset=2 (local.get $at)))
          (local.set $high (v128.load offset=18 (local.get $at)))
          (local.set $sums
            (f32x4.add
              (local.get $sums)
              (f32x4.mul
                (f32x4.convert_i32x4_s
                  (i32x4.add
                    (i32x4.add
                      (i32x4.dot_i16x8_s
                        (i16x8.extend_low_i8x16_s (local.get $low))
                        (v128.load offset=16 (local.get $with)))
                      (i32x4.dot_i16x8_s
                        (i16x8.extend_high_i8x16_s (local.get $low))
                        (v128.load offset=32 (local.get $with))))
                    (i32x4.add
                      (i32x4.dot_i16x8_s
                        (i16x8.extend_low_i8x16_s (local.get $high))
                        (v128.load offset=48 (local.get $with)))
                      (i32x4.dot_i16x8_s
                        (i16x8.extend_high_i8x16_s (local.get $high))
                        (v128.load offset=64 (local.get $with))))))
                (f32x4.splat
                  (f32.mul
                    (f32.load (i32.shl (i32.load16_u (local.get $at)) (i32.const 2)))
                    (f32.load (local.get $with)))))))
          (local.set $with (i32.add (local.get $with) (i32.const 80)))
          (local.set $at (i32.add (local.get $at) (i32.const 34)))
          (br_if $each_block (i32.lt_u (local.get $at) (local.get $end))))
        (f32.store
          (i32.add
            (local.get $out)
            (i32.shl
              (i32.add (i32.mul (local.get $token) (local.get $rows)) (local.get $row))
              (i32.const 2)))
          (call $total (local.get $sums)))
        (local.set $token (i32.add (local.get $token) (i32.const 1)))
        (br_if $each_token (i32.lt_u (local.get $token) (local.get $tokens))))
      (local.set $matrix (local.get $end))
      (local.set $row (i32.add (local.get $row) (i32.const 1)))
      (br_if $each_row (i32.lt_u (local.get $row) (local.get $rows))))))
