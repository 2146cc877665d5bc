"""A short form finds the tool that says what it is short for, and the other way round."""

from __future__ import annotations

import pytest

from broker.search import KeywordIndex
from broker.search.short_forms import other_forms
from broker.search.words import stems
from tests.broker.search.tools import first_of, tool


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("the nsg of a vm", {"network secur group", "virtual machin"}),
        ("NSGs", {"network secur group"}),
        ("role-based access control", {"rbac"}),
        ("know your customer", {"kyc"}),
        ("KYC", set()),
        ("from time to time", set()),
        ("TTLs", {"time live"}),
        ("time to live", {"ttl"}),
        ("time zones", {"tz", "timezon"}),
        ("K8s", {"kubernet"}),
        ("which PRs", {"mr", "pull request", "merg request"}),
        ("", set()),
    ],
)
def test_a_form_is_known_with_its_others(text: str, others: set[str]) -> None:
    assert {" ".join(other) for _, found in other_forms(stems(text)) for other in found} == others


TOOLS = [
    tool("cloud", "network_security_group_list", "List the network security groups."),
    tool("cloud", "network_list", "List the networks."),
    tool("cloud", "security_alert_list", "List alerts on the security of a group."),
    tool("cloud", "role_assignment_list", "List who may do what: role assignments."),
    tool("cloud", "lb_delete", "Delete an LB."),
    tool("cloud", "lb_rules_delete", "Remove rules of a load that a load balancer has."),
    tool("cloud", "vm_show", "Show a Virtual Machine (VM): its size and network."),
    tool("cloud", "vm_percent_metric", "Read how busy a VM is, in percent."),
    tool("cloud", "fs_create", "Create a file system."),
    tool("desk", "sla_check", "How far a ticket is from breaking its SLA."),
    tool("desk", "service_desk_show", "Show the service desk of a ticket."),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Which NSGs do we have?", "network_security_group_list"),
        ("show me the rbac", "role_assignment_list"),
        ("remove the load balancer", "lb_delete"),
        ("Did we break the service level agreement on this ticket?", "sla_check"),
        ("make a filesystem", "fs_create"),
        ("percent of the VM", "vm_percent_metric"),
    ],
)
def test_the_tool_that_says_the_other_form_is_found_first(query: str, first: str) -> None:
    assert first_of(TOOLS, query) == first


def test_a_known_short_form_is_not_taken_for_a_misspelt_word() -> None:
    index = KeywordIndex()
    index.replace("cloud", [tool("cloud", "rack_list", "List racks: rbac of them."), *TOOLS[:4]])
    index.replace("cloud", [tool("cloud", "rbas_list", "List rbas."), *TOOLS[:4]])
    assert [hit.spec.name for hit in index.rank("rbac")] == ["role_assignment_list"]
