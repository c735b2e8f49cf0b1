(** q rounded up ([largest_ratio] in hazard.py). *)
From Coq Require Import Reals Lra.
From Coquelicot Require Import Rcomplements.
From Interval Require Import Tactic.
Open Scope R_scope.

(** The program's steps: the share eps2 rounded down to [d]; exp(d) correctly rounded to [e], by at most half a
    unit; one unit down, which leaves a positive number; a float that is no less than its inverse; at most 1.
    What comes out is at least exp(-eps2). *)
Theorem ratio_rounded_up (share d e unit ratio : R) : 0 <= share -> d <= share ->
  Rabs (e - exp d) <= unit / 2 -> 0 < e - unit -> / (e - unit) <= ratio -> exp (- share) <= Rmin ratio 1.
Proof.
  intros pos down near left0 up. apply Rabs_le_between in near.
  assert (unit0 : 0 <= unit) by lra.
  apply Rmin_glb.
  - apply Rle_trans with (exp (- d)).
    + destruct (Rle_lt_or_eq_dec d share down) as [lt | ->]; [left; apply exp_increasing; lra | lra].
    + rewrite exp_Ropp. apply Rle_trans with (/ (e - unit)); [apply Rinv_le_contravar|]; lra.
  - rewrite <- exp_0. destruct pos as [lt | <-]; [left; apply exp_increasing; lra | rewrite Ropp_0; lra].
Qed.

(** The floats themselves, for common epsilons: each is at least exp(-eps2), and the float below it is not. *)

Lemma ratio_0_1_by_4 : 8784810712763100 / 2 ^ 53 < exp (- (1 / 10 / 4)) <= 8784810712763101 / 2 ^ 53.
Proof. split; interval with (i_prec 90). Qed.

Lemma ratio_0_1_by_5 : 8828844759706715 / 2 ^ 53 < exp (- (1 / 10 / 5)) <= 8828844759706716 / 2 ^ 53.
Proof. split; interval with (i_prec 90). Qed.

Lemma ratio_0_5_by_4 : 7948825443271201 / 2 ^ 53 < exp (- (1 / 2 / 4)) <= 7948825443271202 / 2 ^ 53.
Proof. split; interval with (i_prec 90). Qed.

Lemma ratio_0_5_by_5 : 8150050917395258 / 2 ^ 53 < exp (- (1 / 2 / 5)) <= 8150050917395259 / 2 ^ 53.
Proof. split; interval with (i_prec 90). Qed.

Lemma ratio_1_by_4 : 7014813832872458 / 2 ^ 53 < exp (- (1 / 4)) <= 7014813832872459 / 2 ^ 53.
Proof. split; interval with (i_prec 90). Qed.

Lemma ratio_1_by_5 : 7374471028957529 / 2 ^ 53 < exp (- (1 / 5)) <= 7374471028957530 / 2 ^ 53.
Proof. split; interval with (i_prec 90). Qed.

Lemma ratio_2_by_4 : 5463142506141193 / 2 ^ 53 < exp (- (2 / 4)) <= 5463142506141194 / 2 ^ 53.
Proof. split; interval with (i_prec 90). Qed.

Lemma ratio_2_by_5 : 6037706219090157 / 2 ^ 53 < exp (- (2 / 5)) <= 6037706219090158 / 2 ^ 53.
Proof. split; interval with (i_prec 90). Qed.
