(** The mean of losses where records are added or removed and their number is private (theory, 1 and 7;
    [MeanStats.bounds] in quantities/mean.py). *)
From Coq Require Import Reals Lra Lia List ZArith Bool.
From DP Require Import Constants Laws HazardRelease OutputBounds MeanLoss Least.
Import ListNotations.
Open Scope R_scope.

(** ** Definitions *)

(** Neighbours: one has one record more. *)
Definition adds (valid : R -> Prop) (x x' : list R) : Prop :=
  Forall valid x' /\ exists before v after, x = before ++ after /\ x' = before ++ v :: after.
Definition add_or_remove_one (valid : R -> Prop) (x x' : list R) : Prop := adds valid x x' \/ adds valid x' x.

(** With a records removed and l - a added, a <= l, there are n + l - 2 a, which must be some. *)
Definition size (x : list R) (l a : nat) : R := INR (length x) + INR l - 2 * INR a.
Definition choices (n l : nat) : list nat := filter (fun a => (2 * a <? n + l)%nat && (a <=? n)%nat) (seq 0 (S l)).

(** The least and the greatest mean that this can leave: the largest losses are removed and zeros added, or the
    smallest ones removed and losses of B added. (The program finds the best a without trying all: that is on
    paper, and tested by brute force.) *)
Definition lowest (x : list R) (l : nat) : R :=
  least_of (map (fun a => (total x - top a x) / size x l a) (choices (length x) l)).
Definition highest (B : R) (x : list R) (l : nat) : R :=
  greatest_of (map (fun a => (total x - bottom a x + (INR l - INR a) * B) / size x l a) (choices (length x) l)).

(** L^l is 0 once all records may be dropped; the empty data set has the value 0. *)
Definition private_n_bounds (round : R -> R) (cap : option R) (t_max : R) (x : list R) : bounds :=
  {| lower l := round (if (length x <=? l)%nat then 0 else lowest x l);
     upper l := match l with
                | O => round (if (length x <=? 0)%nat then 0 else lowest x 0)
                | S _ => match cap with Some B => round (highest B x l) | None => t_max end
                end |}.

(** Hazard selection with public settings: [c] ranks. *)
Definition private_mean_private_n (q : R) (grid : nat -> R) (last c : nat) (round : R -> R) (cap : option R)
    (t_max : R) (x : list R) : law nat :=
  hazard_release power_general q grid last c (private_n_bounds round cap t_max x).

(** ** In terms of sums without the largest *)

Definition least_mean (x : list R) (l : nat) : R := least_of (map (fun a => low a x / size x l a)
  (choices (length x) l)).

Lemma choices_spec n l a : In a (choices n l) <-> (a <= l /\ 2 * a < n + l /\ a <= n)%nat.
Proof.
  unfold choices. rewrite filter_In, in_seq, andb_true_iff, Nat.ltb_lt, Nat.leb_le. lia.
Qed.

Lemma choices_some n l : (0 < n + l)%nat -> choices n l <> [].
Proof. intros pos none. assert (into := proj2 (choices_spec n l 0) ltac:(lia)). now rewrite none in into. Qed.

Lemma size_pos x l a : In a (choices (length x) l) -> 0 < size x l a.
Proof.
  intros into. apply choices_spec in into. unfold size. rewrite <- plus_INR, <- (mult_INR 2).
  apply Rlt_Rminus, lt_INR. lia.
Qed.

Lemma lowest_low x l : Forall nonneg x -> lowest x l = least_mean x l.
Proof. intros pos. unfold lowest, least_mean. f_equal. apply map_ext. intros a. now rewrite low_is_top. Qed.

Lemma highest_low B x l : Forall (fun v => v <= B) x -> (0 < length x + l)%nat ->
  highest B x l = B - least_mean (headroom B x) l.
Proof.
  intros le pos. unfold highest, least_mean.
  assert (size_h : length (headroom B x) = length x) by apply map_length.
  rewrite <- greatest_of_least by (apply choices_some; rewrite size_h; lia). rewrite size_h. f_equal.
  apply map_ext_in. intros a into. assert (s := size_pos x l a into). apply choices_spec in into.
  assert (same := low_is_bottom B a x le ltac:(lia)). unfold size in *. rewrite size_h.
  apply Rmult_eq_reg_r with (INR (length x) + INR l - 2 * INR a); [|lra]. field_simplify; [|lra|lra]. lra.
Qed.

Lemma headroom_app B x y : headroom B (x ++ y) = headroom B x ++ headroom B y.
Proof. apply map_app. Qed.

Lemma headroom_with B x v y : headroom B (x ++ v :: y) = headroom B x ++ (B - v) :: headroom B y.
Proof. apply map_app. Qed.

(** Every inequality below compares, for each choice of one side, with one choice of the other. *)
Lemma least_mean_le x l x' l' : (0 < length x' + l')%nat ->
  (forall a', In a' (choices (length x') l') ->
     exists a, In a (choices (length x) l) /\ low a x / size x l a <= low a' x' / size x' l' a') ->
  least_mean x l <= least_mean x' l'.
Proof.
  intros pos better. unfold least_mean.
  assert (some : map (fun a => low a x' / size x' l' a) (choices (length x') l') <> []).
  { assert (ex := choices_some _ _ pos). now destruct (choices (length x') l'). }
  assert (into := least_of_in _ some). apply in_map_iff in into. destruct into as (a' & <- & into).
  destruct (better a' into) as (a & into' & le). apply Rle_trans with (2 := le).
  apply least_of_le, in_map_iff. now exists a.
Qed.

Lemma low_nonneg x : Forall nonneg x -> forall l, 0 <= low l x.
Proof.
  unfold nonneg. induction x as [|v x IH]; intros pos l; [simpl; lra|]. inversion pos as [|v' y v0 pos']; subst.
  destruct l as [|l]; cbn [low]; [|apply Rmin_glb];
    [assert (i := IH pos' 0%nat) | assert (i := IH pos' (S l)) | now apply IH]; lra.
Qed.

Lemma low_all x : Forall nonneg x -> forall l, (length x <= l)%nat -> low l x = 0.
Proof.
  intros pos l le. apply Rle_antisym; [|now apply low_nonneg]. revert l le.
  induction x as [|v x IH]; intros l le; [simpl; lra|]. inversion pos; subst. simpl in le. destruct l as [|l]; [lia|].
  cbn [low]. apply Rle_trans with (1 := Rmin_r _ _). apply IH; [auto | lia].
Qed.

Lemma least_mean_nonneg x l : Forall nonneg x -> (0 < length x + l)%nat -> 0 <= least_mean x l.
Proof.
  intros pos some. unfold least_mean.
  assert (ex : map (fun a => low a x / size x l a) (choices (length x) l) <> []).
  { assert (ex := choices_some _ _ some). now destruct (choices (length x) l). }
  assert (into := least_of_in _ ex). apply in_map_iff in into. destruct into as (a & <- & into).
  apply Rmult_le_pos; [now apply low_nonneg | left; now apply Rinv_0_lt_compat, size_pos].
Qed.

Lemma least_mean_next x l : Forall nonneg x -> (0 < length x + l)%nat -> least_mean x (S l) <= least_mean x l.
Proof.
  intros pos some. apply least_mean_le; auto. intros a into. exists a. assert (s := size_pos x l a into).
  apply choices_spec in into. split; [apply choices_spec; lia|].
  apply quotient_le; [now apply low_nonneg | lra|]. unfold size in *. rewrite S_INR. lra.
Qed.

Section Added.

Variables (before after : list R) (v : R).
Let x := before ++ after.
Let x' := before ++ v :: after.
Hypothesis pos : Forall nonneg x'.

Lemma length_added : length x' = S (length x).
Proof. unfold x, x'. rewrite !app_length. simpl. lia. Qed.

Lemma nonneg_without : Forall nonneg x.
Proof. unfold x, x' in *. apply Forall_app in pos. destruct pos as [left right]. inversion right; subst.
now apply Forall_app. Qed.

Lemma low_added : forall l, low (S l) x' <= low l x /\ low l x <= low l x'.
Proof.
  unfold x, x'. assert (pos' := pos). unfold x' in pos'. clear - pos'. induction before as [|u b IH]; intros l.
  - cbn [app] in *. inversion pos' as [|v' y v0 rest]; subst. unfold nonneg in v0. split; [apply Rmin_r|].
    destruct l as [|l]; cbn [low]; [lra|]. apply Rmin_glb; [lra | now apply low_next].
  - cbn [app] in *. inversion pos' as [|u' y u0 rest]; subst. specialize (IH rest).
    destruct l as [|l]; cbn [low].
    + destruct (IH 0%nat). split; [|lra]. apply Rle_trans with (1 := Rmin_l _ _). lra.
    + destruct (IH (S l)), (IH l). split; apply Rmin_glb;
        try (apply Rle_trans with (1 := Rmin_l _ _); lra); apply Rle_trans with (1 := Rmin_r _ _); lra.
Qed.

(** One more record can be removed again ... *)
Lemma least_mean_added l : (0 < length x + l)%nat -> least_mean x' (S l) <= least_mean x l.
Proof.
  intros some. apply least_mean_le; auto. intros a into. exists (S a). assert (s := size_pos x l a into).
  apply choices_spec in into. split; [apply choices_spec; rewrite length_added; lia|].
  apply quotient_le; [now apply low_nonneg | apply low_added|]. unfold size in *. rewrite length_added, !S_INR. lra.
Qed.

(** ... and one less can be added. *)
Lemma least_mean_removed l : least_mean x (S l) <= least_mean x' l.
Proof.
  apply least_mean_le; [rewrite length_added; lia|]. intros a into. assert (s := size_pos x' l a into).
  assert (nn := nonneg_without).
  apply choices_spec in into. rewrite length_added in into. destruct (Nat.le_gt_cases a (length x)) as [le | gt].
  - exists a. split; [apply choices_spec; lia|].
    apply quotient_le; [now apply low_nonneg | apply low_added|].
    unfold size in *. rewrite length_added, !S_INR in *. lra.
  - exists (length x). split; [apply choices_spec; lia|]. rewrite low_all by auto.
    unfold Rdiv. rewrite Rmult_0_l. apply Rmult_le_pos; [now apply low_nonneg | left; now apply Rinv_0_lt_compat].
Qed.

End Added.

(** ** Definition 3.4 *)

Section PrivateN.

Variables (round : R -> R) (cap : option R) (t_max : R).
Hypothesis rounds : rounding round t_max.
Hypothesis cap_nonneg : match cap with Some B => 0 <= B | None => 0 <= t_max end.

Let bounds_of := private_n_bounds round cap t_max.

Lemma cap_cases : (exists B, cap = Some B /\ 0 <= B) \/ cap = None.
Proof. destruct cap as [B|]; [left; now exists B | auto]. Qed.

Lemma upper_without_cap x l : cap = None -> upper (bounds_of x) (S l) = t_max.
Proof. intros none. simpl. now rewrite none. Qed.

Lemma upper_le_limit x l : cap = None -> upper (bounds_of x) l <= t_max.
Proof. intros none. destruct rounds as [_ most]. destruct l; simpl; [apply most | rewrite none; lra]. Qed.

(** The mean itself, from above. *)
Lemma mean_from_above B x : Forall (fun v => v <= B) x -> Forall nonneg x -> (0 < length x)%nat ->
  lowest x 0 = B - least_mean (headroom B x) 0.
Proof.
  intros le pos n0. rewrite <- highest_low by (auto; lia). unfold lowest, highest.
  assert (only : choices (length x) 0 = [0%nat]).
  { unfold choices. simpl. destruct (length x); [lia | reflexivity]. }
  rewrite only. cbn [map least_of greatest_of]. unfold top, bottom. simpl firstn. simpl total. f_equal. simpl. ring.
Qed.

Lemma upper_private_n B x l : cap = Some B -> Forall (valid_loss cap) x -> (0 < length x + l)%nat ->
  upper (bounds_of x) l = round (B - least_mean (headroom B x) l).
Proof.
  intros capped ok some. destruct (valid_headroom B x capped ok) as [le _].
  assert (pos := valid_nonneg x ok). unfold bounds_of; cbn [upper private_n_bounds]. rewrite capped.
  destruct l as [|l]; [|now rewrite highest_low].
  destruct (Nat.leb_spec (length x) 0); [lia|]. rewrite (mean_from_above B) by (auto; lia). reflexivity.
Qed.

Lemma lower_private_n x l : Forall (valid_loss cap) x ->
  lower (bounds_of x) l = round (if (length x <=? l)%nat then 0 else least_mean x l).
Proof.
  intros ok. simpl. rewrite lowest_low; auto. now apply valid_nonneg in ok.
Qed.

Lemma low_0_headroom B x : 0 <= B -> Forall (valid_loss cap) x -> low 0 (headroom B x) <= INR (length x) * B.
Proof.
  intros B0 ok. apply valid_nonneg in ok. rewrite low_0, total_headroom.
  assert (t0 := low_nonneg x ok 0%nat). rewrite low_0 in t0. lra.
Qed.

Lemma least_headroom B x l : 0 <= B -> Forall (valid_loss cap) x -> (0 < length x + l)%nat ->
  least_mean (headroom B x) l <= B.
Proof.
  intros B0 ok some. assert (size_h : length (headroom B x) = length x) by apply map_length.
  apply Rle_trans with (low 0 (headroom B x) / size (headroom B x) l 0).
  - apply least_of_le, in_map_iff. exists 0%nat. split; auto. apply choices_spec. rewrite size_h. lia.
  - assert (le := low_0_headroom B x B0 ok). unfold size. rewrite size_h. simpl (INR 0).
    assert (n0 : 0 <= INR (length x)) by apply pos_INR. assert (l0 : 0 <= INR l) by apply pos_INR.
    assert (s : 0 < INR (length x) + INR l) by (rewrite <- plus_INR; apply lt_0_INR; lia).
    apply Rmult_le_reg_r with (INR (length x) + INR l); [auto|].
    replace (low 0 (headroom B x) / (INR (length x) + INR l - 2 * 0) * (INR (length x) + INR l))
      with (low 0 (headroom B x)) by (field; lra).
    assert (0 <= INR l * B) by now apply Rmult_le_pos. lra.
Qed.

Lemma private_n_nested x c : Forall (valid_loss cap) x -> nested c (bounds_of x).
Proof.
  intros ok. destruct rounds as [mono most]. assert (pos := valid_nonneg x ok). split; [reflexivity|].
  intros l _. split.
  - rewrite !lower_private_n by auto. apply mono.
    destruct (Nat.leb_spec (length x) (S l)), (Nat.leb_spec (length x) l); try lia; try lra.
    + apply least_mean_nonneg; [auto | lia].
    + apply least_mean_next; [auto | lia].
  - destruct cap_cases as [(B & capped & B0) | none].
    + destruct (Nat.eq_dec (length x + l) 0) as [empty | some].
      * replace l with 0%nat by lia. rewrite (upper_private_n B x 1) by (auto; lia). simpl.
        destruct (Nat.leb_spec (length x) 0); [|lia]. apply mono.
        assert (q := least_headroom B x 1 B0 ok ltac:(lia)). lra.
      * rewrite !(upper_private_n B) by (auto; lia). apply mono.
        assert (q := least_mean_next (headroom B x) l (proj2 (valid_headroom B x capped ok))
          ltac:(unfold headroom; rewrite map_length; lia)). lra.
    + rewrite (upper_without_cap x l) by auto. now apply upper_le_limit.
Qed.

(** The bounds satisfy Definition 3.4, whichever of the two has one record more. *)
Theorem private_n_one_rank_apart x x' c : add_or_remove_one (valid_loss cap) x x' ->
  one_rank_apart c (bounds_of x) (bounds_of x').
Proof.
  destruct rounds as [mono most].
  assert (less : forall before v after, Forall (valid_loss cap) (before ++ v :: after) ->
    Forall (valid_loss cap) (before ++ after)).
  { intros before v after ok. apply Forall_app in ok. destruct ok as [left right]. inversion right; subst.
    now apply Forall_app. }
  intros [(ok' & before & v & after & -> & ->) | (ok & before & v & after & -> & ->)] l _.
  - assert (ok := less _ _ _ ok'). assert (pos' := valid_nonneg _ ok').
    assert (longer := length_added before after v). split.
    + destruct cap_cases as [(B & capped & B0) | none];
        [|rewrite (upper_without_cap _ l) by auto; now apply upper_le_limit].
      destruct (Nat.eq_dec (length (before ++ after) + l) 0) as [empty | some].
      * replace l with 0%nat by lia. rewrite (upper_private_n B _ 1) by (auto; lia). simpl.
        destruct (Nat.leb_spec (length (before ++ after)) 0); [|lia]. apply mono.
        assert (q := least_headroom B _ 1 B0 ok' ltac:(lia)). lra.
      * rewrite !(upper_private_n B) by (auto; lia). apply mono.
        destruct (valid_headroom B _ capped ok') as [_ h].
        rewrite headroom_with in *. rewrite headroom_app.
        assert (q := least_mean_added (headroom B before) (headroom B after) (B - v) h l).
        assert (n_h : length (headroom B before ++ headroom B after) = length (before ++ after))
          by (unfold headroom; now rewrite <- map_app, map_length).
        specialize (q ltac:(lia)). lra.
    + rewrite !lower_private_n by auto. apply mono. rewrite longer.
      destruct (Nat.leb_spec (length (before ++ after)) l), (Nat.leb_spec (S (length (before ++ after))) (S l));
        try lia; try lra.
      apply least_mean_added; [auto | lia].
  - assert (ok' := less _ _ _ ok). assert (pos' := valid_nonneg _ ok). assert (pos := valid_nonneg _ ok').
    assert (longer := length_added before after v). split.
    + destruct cap_cases as [(B & capped & B0) | none];
        [|rewrite (upper_without_cap _ l) by auto; now apply upper_le_limit].
      rewrite !(upper_private_n B) by (auto; lia). apply mono.
      destruct (valid_headroom B _ capped ok) as [_ h]. rewrite headroom_with in *. rewrite headroom_app.
      assert (q := least_mean_removed (headroom B before) (headroom B after) (B - v) h l). lra.
    + rewrite !lower_private_n by auto. apply mono. rewrite longer.
      destruct (Nat.leb_spec (length (before ++ after)) (S l)), (Nat.leb_spec (S (length (before ++ after))) l);
        try lia; try lra.
      * apply least_mean_nonneg; [auto | lia].
      * now apply least_mean_removed.
Qed.

End PrivateN.

(** So a mean of losses with a private number of records, released by hazard selection with power 5 and
    epsilon/5, is private, where the public settings do not depend on that number. *)
Theorem private_mean_private_n_is_private eps q grid last c round cap t_max :
  exp (- (eps / INR share_general)) <= q <= 1 -> rounding round t_max ->
  match cap with Some B => 0 <= B | None => 0 <= t_max end ->
  private eps (add_or_remove_one (valid_loss cap)) (private_mean_private_n q grid last c round cap t_max).
Proof.
  intros ratio rounds cap0.
  assert (sym : forall x x', add_or_remove_one (valid_loss cap) x x' -> add_or_remove_one (valid_loss cap) x' x)
    by (intros x x' [?|?]; [now right | now left]).
  assert (valid_first : forall x x', add_or_remove_one (valid_loss cap) x x' -> Forall (valid_loss cap) x).
  { intros x x' [(ok & before & v & after & -> & ->) | (ok & _)]; auto.
    apply Forall_app in ok. destruct ok as [left right]. inversion right; subst. now apply Forall_app. }
  intros x x' pair. assert (back := sym _ _ pair).
  split; apply release_private_general; eauto using private_n_nested, private_n_one_rank_apart.
Qed.
