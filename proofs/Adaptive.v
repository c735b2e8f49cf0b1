(** The default for means of losses: a scale first, then noise of that scale (theory, 6; [Adaptive] and
    [AdaptiveLaw] in adaptive.py). *)
From Coq Require Import Reals Lra Lia List ZArith.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss WeightedMean OrderStatistics
  Lipschitz Staircase.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** Public settings of both stages, which may depend on the number of records. The first releases the k-th
    largest loss, with [ranks] output bounds of its own and [kept] losses known, on a grid of its own. The
    scale C1 is what [clip] makes of the number of that output. The second stage has a lattice of [fineness]
    steps to C1, with the numbers 0, ..., last_place, and adds [offset] steps, and staircase noise whose middle
    stair has the sizes below [half]. *)
Record stages := Stages {
  first_grid : nat -> R; first_last : nat; k : nat; ranks : nat; kept : nat;
  clip : nat -> R;
  fineness : nat; half : nat; offset : nat -> Z; last_place : nat -> nat }.

(** What the proofs ask of them: one of the order statistics is released, and C1 is positive. *)
Definition valid_stages (public : nat -> stages) : Prop :=
  (forall n, (1 <= k (public n))%nat /\ (1 <= half (public n) <= fineness (public n))%nat) /\
  (forall n drawn, 0 < clip (public n) drawn).

(** Rounded to nearest, halves up. *)
Definition nearest (a : R) : Z := Int_part (a + 1 / 2).

(** The place of the clipped sum T on the lattice. *)
Definition place (C : R) (fineness : nat) (offset : Z) (T : R) : Z := (nearest (INR fineness * T / C) + offset)%Z.

(** The second stage: noise on the clipped sum, given the scale. *)
Definition noisy_sum (eps : R) (p : stages) (T : R -> R) (drawn : nat) : law nat :=
  staircase_law eps (fineness p) (half p)
    (place (clip p drawn) (fineness p) (offset p drawn) (T (clip p drawn))) (last_place p drawn).

(** The release: the numbers of C1 and of the output. The terms of a data set are its losses, or its losses
    times public weights. [seen] is what the first stage sees of a term, the term itself or its n / W fold,
    rounded, and [limit] the public limit of that; [q] is the ratio of the first stage, and [eps_b] what the
    second one costs. *)
Definition two_stages (seen : R -> R) (limit q eps_b : R) (public : nat -> stages) (x : list R) : law (nat * nat) :=
  let p := public (length x) in
  then_
    (hazard_release power_monotonic q (first_grid p) (first_last p) (ranks p)
      (order_bounds limit (kept p) (k p) (map seen x)))
    (noisy_sum eps_b p (fun C => clipped_total C x)).

Definition valid_term (seen : R -> R) (limit : R) (v : R) : Prop := 0 <= v /\ 0 <= seen v <= limit.

(** ** Facts *)

(** Rounding commutes with shifts by lattice points and is monotone: what moves by at most n steps before it
    moves by at most n steps after it. *)
Theorem nearest_moves (a b : R) (n : nat) : Rabs (a - b) <= INR n -> (Z.abs (nearest a - nearest b) <= Z.of_nat n)%Z.
Proof.
  assert (one_way : forall a b, a <= b + INR n -> (nearest a <= nearest b + Z.of_nat n)%Z).
  { clear. intros a b le. unfold nearest.
    destruct (base_Int_part (a + 1 / 2)) as [low _]. destruct (base_Int_part (b + 1 / 2)) as [_ high].
    apply Z.lt_succ_r, lt_IZR. rewrite succ_IZR, plus_IZR, <- INR_IZR_INZ. lra. }
  intros near. assert (up := Rle_trans _ _ _ (Rle_abs _) near). rewrite Rabs_minus_sym in near.
  assert (up' := Rle_trans _ _ _ (Rle_abs _) near).
  assert (le := one_way a b ltac:(lra)). assert (le' := one_way b a ltac:(lra)). lia.
Qed.

(** The clipped sum moves by at most C when a record is replaced. *)
Theorem clipped_total_moves C x x' (valid : R -> Prop) : 0 <= C -> (forall v, valid v -> 0 <= v) ->
  replace_one valid x x' ->
  Rabs (clipped_total C x - clipped_total C x') <= C.
Proof.
  intros C0 pos (ok & ok' & before & v & v' & after & -> & ->). unfold clipped_total.
  assert (app : forall y z, total (y ++ z) = total y + total z)
    by (induction y; intros; simpl; [|rewrite IHy]; ring).
  rewrite !map_app, !app. cbn [map total].
  assert (inside : forall u, 0 <= u -> 0 <= Rmin C u <= C)
    by (intros u u0; split; [now apply Rmin_glb | apply Rmin_l]).
  assert (v0 : 0 <= v) by (apply pos; rewrite Forall_forall in ok; apply ok, in_elt).
  assert (v0' : 0 <= v') by (apply pos; rewrite Forall_forall in ok'; apply ok', in_elt).
  destruct (inside v v0), (inside v' v0'). apply Rabs_le. lra.
Qed.

Lemma place_moves C n offset T T' : 0 < C -> Rabs (T - T') <= C ->
  (Z.abs (place C n offset T - place C n offset T') <= Z.of_nat n)%Z.
Proof.
  intros C0 moved. unfold place.
  assert (near := nearest_moves (INR n * T / C) (INR n * T' / C) n).
  assert (N : 0 <= INR n) by apply pos_INR.
  assert (steps : Rabs (INR n * T / C - INR n * T' / C) <= INR n).
  { replace (_ - _) with (INR n * (/ C * (T - T'))) by (field; lra).
    rewrite !Rabs_mult, (Rabs_right (INR n)), (Rabs_right (/ C)) by (try apply Rle_ge, Rlt_le, Rinv_0_lt_compat; lra).
    replace (INR n) with (INR n * 1) at 2 by ring. apply Rmult_le_compat_l; auto.
    replace 1 with (/ C * C) by (field; lra). apply Rmult_le_compat_l; auto.
    left. now apply Rinv_0_lt_compat. }
  specialize (near steps). lia.
Qed.

(** Any private scale C1, and then noise on a sum that moves by at most C1: together they cost the sum. *)
Theorem scale_then_noise_private eps_a eps_b p (first first' : law nat) (T T' : R -> R) :
  0 < eps_b -> (1 <= half p <= fineness p)%nat -> (forall drawn, 0 < clip p drawn) ->
  NoDup (outcomes first) -> (forall drawn, In drawn (outcomes first) -> 0 <= mass first drawn) ->
  within eps_a first first' -> (forall C, 0 < C -> Rabs (T C - T' C) <= C) ->
  within (eps_a + eps_b) (then_ first (noisy_sum eps_b p T)) (then_ first' (noisy_sum eps_b p T')).
Proof.
  intros b0 half1 scales once nonneg private_scale moves. apply within_then; auto.
  - intros a into. now apply (within_at Nat.eq_dec).
  - apply private_scale.
  - intros a k _ into. split; [left; now apply staircase_mass_pos|].
    apply (within_at Nat.eq_dec); [apply seq_NoDup | auto |].
    apply staircase_private; auto. apply place_moves; auto.
Qed.

(** Both outputs together are epsilon-differentially private, where epsilon is what the two stages cost
    together: for all public settings, with C1 positive, and every q with exp(-eps_a/4) <= q <= 1. *)
Theorem two_stages_private eps_a eps_b seen limit q public :
  0 <= limit -> 0 < eps_b -> exp (- (eps_a / INR share_monotonic)) <= q <= 1 ->
  valid_stages public ->
  private (eps_a + eps_b) (replace_one (valid_term seen limit)) (two_stages seen limit q eps_b public).
Proof.
  intros limit0 b0 ratio [counts scales].
  assert (way : forall x x', replace_one (valid_term seen limit) x x' ->
    within (eps_a + eps_b) (two_stages seen limit q eps_b public x) (two_stages seen limit q eps_b public x')).
  { intros x x' pair. assert (pair_seen : replace_one (valid_loss (Some limit)) (map seen x) (map seen x')).
    { destruct pair as (ok & ok' & before & v & v' & after & same & same').
      split; [|split; [|exists (map seen before), (seen v), (seen v'), (map seen after)]].
      - apply Forall_map. revert ok. apply Forall_impl. now intros u [].
      - apply Forall_map. revert ok'. apply Forall_impl. now intros u [].
      - now rewrite same, same', !map_app. }
    assert (size : length x' = length x).
    { destruct pair as (_ & _ & before & v & v' & after & -> & ->). rewrite !app_length. reflexivity. }
    unfold two_stages. rewrite size. destruct (counts (length x)) as [k1 half1].
    apply scale_then_noise_private; auto.
    - apply seq_NoDup.
    - intros a _. apply hazard_mass_nonneg; [unfold power_monotonic; lia|]. intros i. apply weight_pos.
      apply Rlt_le_trans with (2 := proj1 ratio), exp_pos.
    - destruct (order_statistic_private limit (kept (public (length x))) _ limit0 k1 eps_a q
        (first_grid (public (length x))) (first_last (public (length x))) (ranks (public (length x))) ratio
        _ _ pair_seen) as [near _]. exact near.
    - intros C C0. apply clipped_total_moves with (3 := pair); [lra | now intros v []]. }
  intros x x' pair. split; apply way; auto. now apply replace_one_sym.
Qed.

(** And they have a probability law. *)
Theorem two_stages_is_law seen limit eps_b q public x : 0 < q -> 0 < eps_b ->
  valid_stages public -> is_law (two_stages seen limit q eps_b public x).
Proof.
  intros q0 b0 [counts _]. apply is_law_then.
  - apply hazard_is_law; [unfold power_monotonic; lia|]. intros i. now apply weight_pos.
  - intros a _. apply staircase_is_law; auto. apply counts.
Qed.

(** The share of epsilon that the first stage takes, given the number of records. *)
Definition valid_share (share : nat -> R) : Prop := forall n, share_first <= share n <= share_first_of_few.

Lemma share_between share eps n : valid_share share -> 0 < eps -> 0 < share n * eps < eps.
Proof. intros shares pos. specialize (shares n). unfold share_first, share_first_of_few in shares. nra. Qed.

(** Both stages end to end: the second takes what the first leaves of epsilon. *)
Theorem adaptive_is_private eps share seen limit q public :
  valid_share share -> 0 < eps -> 0 <= limit ->
  (forall n, exp (- (share n * eps / INR share_monotonic)) <= q n <= 1) -> valid_stages public ->
  private eps (replace_one (valid_term seen limit))
    (fun x => let n := length x in two_stages seen limit (q n) (eps - share n * eps) public x).
Proof.
  intros shares eps0 limit0 ratio valid.
  apply (size_is_public eps _ (fun n => two_stages seen limit (q n) (eps - share n * eps) public)). intros n.
  assert (parts := share_between share eps n shares eps0).
  replace eps with (share n * eps + (eps - share n * eps)) at 1 by ring. apply two_stages_private; auto. lra.
Qed.

(** For a plain mean of losses from 0 to [limit] ... *)
Theorem adaptive_mean_loss_is_private eps share limit q public :
  valid_share share -> 0 < eps -> 0 <= limit ->
  (forall n, exp (- (share n * eps / INR share_monotonic)) <= q n <= 1) -> valid_stages public ->
  private eps (replace_one (valid_loss (Some limit)))
    (fun x => let n := length x in two_stages (fun v => v) limit (q n) (eps - share n * eps) public x).
Proof.
  intros. intros x x' (ok & ok' & pair). apply (adaptive_is_private eps share); auto.
  split; [|split]; auto; [revert ok | revert ok']; apply Forall_impl; intros v [pos le]; unfold valid_term; auto.
Qed.

(** ... and for a weighted mean, or one over groups, each of whose terms has a limit of its own. *)
Theorem adaptive_weighted_mean_is_private eps share seen limit limits q public :
  valid_share share -> 0 < eps -> 0 <= limit ->
  (forall n, exp (- (share n * eps / INR share_monotonic)) <= q n <= 1) -> valid_stages public ->
  (forall v m, In m limits -> 0 <= v <= m -> 0 <= seen v <= limit) ->
  private eps (replace_term limits)
    (fun x => let n := length x in two_stages seen limit (q n) (eps - share n * eps) public x).
Proof.
  intros shares eps0 limit0 ratio public_ok within_limit x x' (ok & ok' & pair).
  assert (each : forall y, valid_terms limits y -> Forall (valid_term seen limit) y).
  { intros y valid. assert (all := within_limit). clear - valid all.
    induction valid as [|v m y limits v_in valid IH]; constructor.
    - split; [apply v_in | apply all with m; [now left | auto]].
    - apply IH. intros w m' into. apply all. now right. }
  apply (adaptive_is_private eps share); auto. now split; [|split]; auto.
Qed.
