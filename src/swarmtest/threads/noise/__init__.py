"""Noise: threads are disturbed where they may meet, so that rare orders become frequent."""

from swarmtest.threads.noise.noise import Noise
from swarmtest.threads.noise.settings import KINDS, NoiseSettings, noise_dimensions, noise_space

__all__ = ["KINDS", "Noise", "NoiseSettings", "noise_dimensions", "noise_space"]
