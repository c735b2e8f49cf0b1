(** The numbers of the program. [tests/project/test_proofs.py] compares each with the code. *)
From Coq Require Import Reals.
Open Scope R_scope.

(** hazard.py: TAIL, PEAK, and the power of H for monotonic metrics and for others. *)
Definition tail : nat := 3.
Definition peak : R := 256.
Definition power_monotonic : nat := 4.
Definition power_general : nat := 5.

(** hazard.py, share_of_rank: eps2 is epsilon divided by this. *)
Definition share_monotonic : nat := 4.
Definition share_general : nat := 5.

(** adaptive.py: the least share of epsilon that the first stage takes, and, with few records, the largest. *)
Definition share_first : R := 1 / 4.
Definition share_first_of_few : R := 3 / 5.

(** query.py and ranks.py: the share of epsilon that a noisy count takes. *)
Definition share_count : R := 1 / 20.
