"""The names of irad.rules. This is what `irad.lazy` reads, so each name is written once."""

from irad.api.custom.declarations import (
    forward_from_body as forward_from_body,
    inactive as inactive,
    inactive_arg as inactive_arg,
    inactive_type as inactive_type,
    noalias as noalias,
    noinline as noinline,
    opt_out as opt_out,
)
from irad.api.custom.higher_order import (
    attach as attach,
    give_cotangents as give_cotangents,
    kept_arguments as kept_arguments,
    pull as pull,
    push as push,
    zero_cotangents as zero_cotangents,
)
from irad.api.custom.imported_rules import import_rule as import_rule
from irad.api.custom.rules import (
    augmented_primal as augmented_primal,
    build_rule as build_rule,
    close as close,
    easy_rule as easy_rule,
    forward as forward,
    has_rule as has_rule,
    remove as remove,
    reverse as reverse,
    workspace as workspace,
)
from irad.frontend.custom.rule_arguments import (
    AugmentedReturn as AugmentedReturn,
    RuleConfig as RuleConfig,
    in_lanes as in_lanes,
    is_active as is_active,
    is_needed as is_needed,
)
from irad.frontend.custom.rule_workspace import StatefulRule as StatefulRule
from irad.frontend.custom.rules_from_partials import zero_shadow as zero_shadow
from irad.frontend.custom.stop_gradient import (
    ignore_derivatives as ignore_derivatives,
    stop_gradient as stop_gradient,
    within_autodiff as within_autodiff,
)
from irad.frontend.custom.workspace_pools import Workspace as Workspace
from irad.rules.all_rules import ALL as ALL

__all__: list[str]
