"""Fully adaptive composition as pure mathematics: no files, clock, randomness or tables.

Where is which theorem?

=================  ====================================================================================
exact              what a float means; directed rounding
losses             ``GDP``: what one release costs; sums (Smith and Thakurta 2022, Theorem 1)
conversions        mu <-> (epsilon, delta) (Dong, Roth and Su 2022, Corollary 2.13); mu -> rho
filters            ``GDPFilter`` (Smith and Thakurta 2022, Theorem 1): refuses
odometers          ``MixtureOdometer`` (Whitehouse et al. 2023, Theorem 3, second bound; Theorem 5): reports
mixture            the best parameter of a normal mixture, shared by the odometer and the intervals
intervals          estimates refined again and again, and intervals that stay honest (Robbins 1970)
=================  ====================================================================================
"""
