(** The metric with records clipped moves by at most Delta (theory, 6, of a mean). *)
From Coq Require Import Reals Lra Lia List.
From DP Require Import Laws OutputBounds MeanLoss.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** f_Delta: the least of L^l + l Delta over the ranks l <= c, and of (c + 1) Delta. *)
Fixpoint least_to (c : nat) (delta : R) (b : bounds) : R :=
  match c with
  | O => lower b 0
  | S c' => Rmin (lower b c + INR c * delta) (least_to c' delta b)
  end.
Definition f_delta (c : nat) (delta : R) (b : bounds) : R := Rmin (INR (S c) * delta) (least_to c delta b).

(** The sum of losses clipped at C. *)
Definition clipped_total (C : R) (x : list R) : R := total (map (Rmin C) x).

(** ** Facts *)

Lemma least_to_le c delta b l : (l <= c)%nat -> least_to c delta b <= lower b l + INR l * delta.
Proof.
  induction c as [|c IH]; intros le.
  - replace l with 0%nat by lia. simpl. lra.
  - cbn [least_to]. destruct (Nat.eq_dec l (S c)) as [->|]; [apply Rmin_l|].
    apply Rle_trans with (1 := Rmin_r _ _). apply IH. lia.
Qed.

Lemma least_to_glb c delta b a : (forall l, (l <= c)%nat -> a <= lower b l + INR l * delta) ->
  a <= least_to c delta b.
Proof.
  induction c as [|c IH]; intros le.
  - specialize (le 0%nat (le_n 0)). simpl in *. lra.
  - cbn [least_to]. apply Rmin_glb; auto.
Qed.

Lemma f_delta_up c delta b b' : 0 <= delta -> (forall l, (l <= c)%nat -> 0 <= lower b l) ->
  (forall l, (l < c)%nat -> lower b' (S l) <= lower b l) -> f_delta c delta b' <= f_delta c delta b + delta.
Proof.
  intros d0 pos apart. unfold f_delta.
  assert (goal : Rmin (INR (S c) * delta) (least_to c delta b') - delta <=
    Rmin (INR (S c) * delta) (least_to c delta b)); [|lra].
  apply Rmin_glb.
  - assert (le := Rmin_l (INR (S c) * delta) (least_to c delta b')). lra.
  - apply least_to_glb. intros l le. destruct (Nat.eq_dec l c) as [-> | differ].
    + assert (top := Rmin_l (INR (S c) * delta) (least_to c delta b')). rewrite S_INR in *.
      specialize (pos c le). lra.
    + assert (step := least_to_le c delta b' (S l) ltac:(lia)). rewrite S_INR in step.
      assert (low := Rmin_r (INR (S c) * delta) (least_to c delta b')).
      specialize (apart l ltac:(lia)). lra.
Qed.

(** For every Delta, and for every metric with lower bounds that are not negative, f_Delta moves by at most
    Delta between neighbours. *)
Theorem f_delta_moves_by_delta c delta b b' : 0 <= delta ->
  (forall l, (l <= c)%nat -> 0 <= lower b l /\ 0 <= lower b' l) ->
  one_rank_apart c b b' -> one_rank_apart c b' b -> Rabs (f_delta c delta b - f_delta c delta b') <= delta.
Proof.
  intros d0 pos apart apart'.
  assert (up := f_delta_up c delta b b' d0 (fun l le => proj1 (pos l le)) (fun l lt => proj2 (apart l lt))).
  assert (up' := f_delta_up c delta b' b d0 (fun l le => proj2 (pos l le)) (fun l lt => proj2 (apart' l lt))).
  apply Rabs_le. lra.
Qed.

(** ** For the mean of n losses, f_Delta with all n ranks is the mean of the losses clipped at n Delta *)

Lemma clipped_le_low C x : 0 <= C -> forall l, clipped_total C x <= low l x + INR l * C.
Proof.
  intros C0. unfold clipped_total. induction x as [|v x IH]; intros l; cbn [map total low].
  - assert (0 <= INR l * C) by (apply Rmult_le_pos; [apply pos_INR | auto]). lra.
  - destruct l as [|l].
    + specialize (IH 0%nat). assert (le := Rmin_r C v). simpl in *. lra.
    + assert (IH' := IH (S l)). specialize (IH l). rewrite S_INR in *.
      assert (le := Rmin_l C v). assert (le' := Rmin_r C v).
      assert (q : Rmin C v + total (map (Rmin C) x) - (INR l + 1) * C <= Rmin (v + low (S l) x) (low l x));
        [apply Rmin_glb|]; lra.
Qed.

Lemma clipped_is_low C x : exists l, (l <= length x)%nat /\ low l x + INR l * C <= clipped_total C x.
Proof.
  unfold clipped_total. induction x as [|v x (l & le & reached)]; [exists 0%nat; simpl; split; [lia | lra]|].
  cbn [map total length]. destruct (Rle_dec v C) as [small | large].
  - exists l. split; [lia|]. rewrite Rmin_right by auto. destruct l as [|l]; cbn [low]; [lra|].
    assert (q := Rmin_l (v + low (S l) x) (low l x)). lra.
  - exists (S l). split; [lia|]. rewrite Rmin_left by lra. cbn [low].
    assert (q := Rmin_r (v + low (S l) x) (low l x)). rewrite S_INR. lra.
Qed.

Lemma clipped_le_n C x : clipped_total C x <= INR (length x) * C.
Proof.
  unfold clipped_total. induction x as [|v x IH]; cbn [map total length]; [simpl; lra|].
  rewrite S_INR. assert (q := Rmin_l C v). lra.
Qed.

Theorem f_delta_of_mean cap t_max delta x : 0 <= delta -> (0 < length x)%nat -> Forall (valid_loss cap) x ->
  let n := length x in
  f_delta n delta (mean_bounds (fun a => a) cap t_max x) = clipped_total (INR n * delta) x / INR n.
Proof.
  intros d0 n0 valid n. assert (N : 0 < INR n) by now apply lt_0_INR.
  set (C := INR n * delta). assert (C0 : 0 <= C) by (apply Rmult_le_pos; lra).
  assert (each : forall l, lower (mean_bounds (fun a => a) cap t_max x) l + INR l * delta
    = (low l x + INR l * C) / INR n).
  { intros l. simpl. rewrite (lower_is_low cap x l valid). unfold C. fold n. field. lra. }
  assert (reach := clipped_is_low C x). destruct reach as (l & le & reached). apply Rle_antisym.
  - unfold f_delta. apply Rle_trans with (1 := Rmin_r _ _).
    apply Rle_trans with (1 := least_to_le n delta _ l le). rewrite each. now apply over_n.
  - unfold f_delta. apply Rmin_glb.
    + assert (all := clipped_le_n C x). fold n in all.
      apply Rle_trans with (INR n * C / INR n); [now apply over_n|]. unfold C. rewrite S_INR.
      replace (INR n * (INR n * delta) / INR n) with (INR n * delta) by (field; lra). lra.
    + apply least_to_glb. intros m _. rewrite each. apply over_n. now apply clipped_le_low.
Qed.
