"""The public names of `swarmtest.why`, each with the module that defines it."""

from swarmtest.why.explanation import Confirmation as Confirmation
from swarmtest.why.explanation import Explanation as Explanation
from swarmtest.why.explanation import explanations_of as explanations_of
from swarmtest.why.failing_test import explain_test as explain_test
from swarmtest.why.fault_explanations import explain_fault as explain_fault
from swarmtest.why.fault_explanations import explain_faults as explain_faults
from swarmtest.why.variant_runs import VariantBudget as VariantBudget
