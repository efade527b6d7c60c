"""What DataGrip, IntelliJ and PyCharm ask as they look around: of each of its 59 subjects a statement of its forms.

The statements are written here, after the relations, functions and casts of those that DataGrip sends; `NS` is a
schema's number, `XID` what `age` is asked about. Each has the columns that a Postgres gives it.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from dpsql.system_catalog import CatalogRefusal, SystemCatalog
from dpsql.tests.system_catalog.test_corpus import _ours, _theirs

NS, XID = "'public'::regnamespace::oid", "'0'::varchar::xid"
OWNER = "pg_catalog.pg_get_userbyid"
LEAST = 57

SUBJECTS = {
    "version": "select version()",
    "database": "select current_database() as a, current_schemas(false) as b",
    "names": "select current_database(), current_schema(), current_user",
    "startup": "select round(extract(epoch from pg_postmaster_start_time() at time zone 'UTC')) as began",
    "locks": "select k.transactionid::varchar::bigint as t from pg_catalog.pg_locks k where k.transactionid is not null "
    "order by pg_catalog.age(k.transactionid) desc limit 1",
    "transaction": "select case when pg_catalog.pg_is_in_recovery() then null else "
    "(pg_catalog.txid_current() % 4294967296)::varchar::bigint end as t",
    "databases": f"select d.oid::bigint as id, datname, s.description, datistemplate, datallowconn, {OWNER}(d.datdba) as o "
    "from pg_catalog.pg_database d left join pg_catalog.pg_shdescription s on d.oid = s.objoid "
    "order by case when datname = pg_catalog.current_database() then -1::bigint else d.oid::bigint end",
    "zones": "select name, is_dst from pg_catalog.pg_timezone_names union distinct "
    "select abbrev as name, is_dst from pg_catalog.pg_timezone_abbrevs",
    "roles": "select r.oid::bigint as id, rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, "
    "rolreplication, rolconnlimit, rolvaliduntil, rolbypassrls, rolconfig, s.description from pg_catalog.pg_roles r "
    "left join pg_catalog.pg_shdescription s on s.objoid = r.oid",
    "members": "select member, roleid, admin_option from pg_catalog.pg_auth_members order by member, roleid::text",
    "tablespaces": f"select p.oid::bigint as id, p.spcname, p.xmin as state, {OWNER}(p.spcowner) as o, "
    "pg_catalog.pg_tablespace_location(p.oid) as place, p.spcoptions from pg_catalog.pg_tablespace p",
    "shared rights": "select p.oid as id, p.spcacl as acl from pg_catalog.pg_tablespace p union all "
    "select d.oid, d.datacl from pg_catalog.pg_database d",
    "schemas": f"select n.oid::bigint as id, n.xmin as state, nspname, s.description, {OWNER}(n.nspowner) as o "
    "from pg_catalog.pg_namespace n left join pg_catalog.pg_description s on n.oid = s.objoid "
    "order by case when nspname = pg_catalog.current_schema() then -1::bigint else n.oid::bigint end",
    "superuser": "select usesuper from pg_user where usename = current_user",
    "event triggers": f"select e.oid as id, e.xmin as state, e.evtname, e.evtevent, e.evtfoid, {OWNER}(e.evtowner) as o, "
    "e.evttags, case when e.evtenabled = 'D' then 1 else 0 end as off from pg_catalog.pg_event_trigger e",
    "wrappers": f"select w.oid as id, w.fdwname, p.proname, w.fdwoptions, {OWNER}(w.fdwowner) as o "
    "from pg_catalog.pg_foreign_data_wrapper w left outer join pg_catalog.pg_proc p on w.fdwhandler = p.oid",
    "servers": f"select s.oid as id, s.srvfdw, s.xmin as state, s.srvname, s.srvtype, s.srvversion, s.srvoptions, "
    f"{OWNER}(s.srvowner) as o from pg_catalog.pg_foreign_server s",
    "user mappings": f"select oid as id, umserver, case when umuser = 0 then null else {OWNER}(umuser) end as u, umoptions "
    "from pg_catalog.pg_user_mapping order by umserver",
    "access methods": "select a.oid as id, a.xmin as state, a.amname, a.amhandler::oid as handler, "
    "pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(p.proname) as name, a.amtype from pg_am a "
    "join pg_proc p on a.amhandler::oid = p.oid join pg_namespace n on p.pronamespace = n.oid",
    "extensions": "select e.oid as id, e.xmin as state, extname, extversion, nspname, "
    "array(select unnest from unnest(versions) where unnest > extversion) as newer from pg_catalog.pg_extension e "
    "join pg_namespace n on e.extnamespace = n.oid left join (select name, array_agg(version) as versions "
    "from pg_available_extension_versions() group by name) v on extname = v.name",
    "languages": "select l.oid as id, l.xmin as state, lanname, lanpltrusted, h.proname as handler "
    "from pg_catalog.pg_language l left join pg_catalog.pg_proc h on h.oid = lanplcallfoid",
    "remarks": "select s.objoid as id, case when 'pg_catalog.pg_am'::regclass = classoid then 'A' "
    "when 'pg_catalog.pg_cast'::regclass = classoid then 'C' end as kind, s.objsubid, s.description "
    "from pg_catalog.pg_description s where classoid in ('pg_catalog.pg_am'::regclass, 'pg_catalog.pg_cast'::regclass)",
    "rights": "select l.oid as id, l.lanacl as acl from pg_catalog.pg_language l union all "
    "select n.oid, n.nspacl from pg_catalog.pg_namespace n",
    "casts": "select c.oid, c.xmin as state, c.castsource, pg_catalog.quote_ident(n.nspname) || '.' || "
    "pg_catalog.quote_ident(t.typname) as name, c.castcontext, c.castmethod from pg_catalog.pg_cast c "
    "join pg_type t on c.castsource::oid = t.oid join pg_namespace n on t.typnamespace = n.oid",
    "members of extensions": "select e.oid as id, d.objid from pg_extension e join pg_depend d on e.oid = d.refobjid "
    "and d.refclassid = 'pg_extension'::regclass::oid where d.deptype = 'e' order by e.oid",
    "all objects": f"select c.oid, relnamespace as n, pg_catalog.translate(relkind, 'rmvpfS', 'rmvrfS') as kind, relname "
    f"from pg_catalog.pg_class c where relnamespace in ({NS}) and relkind in ('r', 'm', 'v', 'p', 'f', 'S') union all "
    f"select oid, collnamespace, 'C', collname from pg_catalog.pg_collation where collnamespace in ({NS}) union all "
    f"select oid, pronamespace, case when prokind != 'a' then 'R' else 'a' end, proname from pg_catalog.pg_proc "
    f"where pronamespace in ({NS}) order by n",
    "arguments": "select pronamespace as n, oid as id, proargnames, proargmodes, array_length(proargtypes, 1) as many "
    f"from pg_catalog.pg_proc where pronamespace in ({NS}) order by n",
    "names of columns": "with c as (select c.oid as id, c.relkind as kind, c.relnamespace as n from pg_catalog.pg_class c "
    f"where c.relnamespace in ({NS})) select c.n, c.id, pg_catalog.translate(c.kind, 'rmvpf', 'rmvrf') as kind, a.attnum, "
    "a.attname from c join pg_catalog.pg_attribute a on c.id = a.attrelid where a.attnum > 0 and not a.attisdropped",
    "sequences": f"select c.xmin as state, q.seqrelid, c.relname, pg_catalog.format_type(q.seqtypid, null) as type, "
    f"q.seqstart, q.seqincrement, q.seqmin, q.seqmax, q.seqcache, q.seqcycle, {OWNER}(c.relowner) as o "
    f"from pg_catalog.pg_sequence q join pg_class c on q.seqrelid = c.oid where c.relnamespace = {NS} "
    f"and pg_catalog.age(c.xmin) <= pg_catalog.age({XID})",
    "types": f"select t.oid as id, t.xmin as state, t.typname, t.typtype, t.typcategory, t.typrelid, t.typbasetype, "
    "case when t.typtype in ('c', 'e') then null else pg_catalog.format_type(t.typbasetype, t.typtypmod) end as def, "
    f"t.typndims, t.typdefault, t.typnotnull, {OWNER}(t.typowner) as o from pg_catalog.pg_type t left outer join "
    f"pg_catalog.pg_class c on t.typrelid = c.oid where t.typnamespace = {NS} and (t.typtype in ('d', 'e') or "
    "c.relkind = 'c'::\"char\" or (t.typtype = 'b' and (t.typelem = 0 or t.typcategory <> 'A')))",
    "tables": "select t.relkind, t.relname, t.oid as id, t.xmin as state, false as oids, t.reltablespace, t.reloptions, "
    "t.relpersistence, (select pg_catalog.array_agg(inhparent::bigint order by inhseqno)::varchar "
    "from pg_catalog.pg_inherits where t.oid = inhrelid) as parents, t.relispartition, "
    "pg_catalog.pg_get_partkeydef(t.oid) as key, pg_catalog.pg_get_expr(t.relpartbound, t.oid) as bound, t.relam, "
    f"{OWNER}(t.relowner) as o from pg_catalog.pg_class t where relnamespace = {NS} and relkind in ('r', 'm', 'v', 'f', 'p')",
    "foreign tables": "select f.ftrelid, s.srvname, f.ftoptions from pg_catalog.pg_foreign_table f "
    "left outer join pg_catalog.pg_foreign_server s on f.ftserver = s.oid join pg_catalog.pg_class c on f.ftrelid = c.oid "
    f"where c.relnamespace = {NS}",
    "types of arguments": "with p as (select prorettype, proargtypes, proallargtypes from pg_catalog.pg_proc "
    f"where pronamespace = {NS}), o as (select oprleft, oprright, oprresult from pg_catalog.pg_operator "
    f"where oprnamespace = {NS}), k as (select prorettype as id from p union select unnest(proargtypes) from p union "
    "select unnest(proallargtypes) from p union select oprleft from o where oprleft is not null) "
    "select k.id, t.typname from k join pg_catalog.pg_type t on t.oid = k.id",
    "routines": "with l as (select oid as lang, lanname from pg_catalog.pg_language), r as (select proname, prolang as lang, "
    "oid as id, xmin as state, proargnames, proargmodes, proargtypes::int[] as taken, proallargtypes::int[] as all_taken, "
    "pg_catalog.pg_get_expr(proargdefaults, 0) as defaults, provariadic, prorettype, proretset, prokind, provolatile, "
    f"proisstrict, prosecdef, proconfig, procost, proleakproof, proparallel from pg_catalog.pg_proc where pronamespace = {NS}) "
    "select * from r natural join l",
    "aggregates": "select p.oid as id, p.proname, p.proargtypes::int[] as taken, a.aggtransfn::oid as t, "
    "a.aggtransfn::regproc::text as name, case when a.aggfinalfn::oid = 0 then null else a.aggfinalfn::regproc::varchar end "
    "as final, a.agginitval, a.aggsortop, case when a.aggsortop = 0 then null else a.aggsortop::regoper::varchar end as sort "
    f"from pg_catalog.pg_aggregate a join pg_catalog.pg_proc p on a.aggfnoid = p.oid where p.pronamespace = {NS}",
    "operators": "select o.oid as id, oprname, oprkind, oprleft, oprright, oprresult, oprcode::oid as main, "
    "oprcode::varchar as main_name, oprcom::regoper::varchar as com, oprcanmerge, oprcanhash "
    f"from pg_catalog.pg_operator o where oprnamespace = {NS}",
    "collations": f"select oid as id, xmin as state, collname, collcollate, collctype, {OWNER}(collowner) as o "
    f"from pg_catalog.pg_collation where collnamespace = {NS}",
    "operator classes": "select o.oid as id, opcname, opcintype::regtype::varchar as type, case when opckeytype = 0 then null "
    "else opckeytype::regtype::varchar end as key, opcdefault, opfname from pg_catalog.pg_opclass o "
    f"join pg_catalog.pg_opfamily f on f.oid = opcfamily where opcnamespace = {NS}",
    "operator families": f"select f.oid as id, f.xmin as state, opfname, opfmethod from pg_catalog.pg_opfamily f "
    f"where opfnamespace = {NS}",
    "family's operators": "select pg_amop.oid from pg_catalog.pg_amop join pg_catalog.pg_opfamily "
    f"on pg_opfamily.oid = amopfamily where opfnamespace = {NS}",
    "their signatures": "select o.oid as id, o.amopstrategy, o.amopopr, o.amopopr::regoperator::varchar as sig, c.oid as class "
    "from pg_catalog.pg_amop o left join pg_opfamily f on o.amopfamily = f.oid left join pg_depend d "
    "on d.classid = 'pg_amop'::regclass and o.oid = d.objid left join pg_opclass c on c.oid = d.refobjid "
    f"where f.opfnamespace = {NS}",
    "family's functions": "select pg_amproc.oid from pg_catalog.pg_amproc join pg_catalog.pg_opfamily "
    f"on pg_opfamily.oid = amprocfamily where opfnamespace = {NS}",
    "functions' signatures": "select p.oid as id, p.amprocnum, p.amproc::oid as f, p.amproc::regprocedure::varchar as sig, "
    "p.amproclefttype::regtype::varchar as l from pg_catalog.pg_amproc p left join pg_opfamily f on p.amprocfamily = f.oid "
    f"where f.opfnamespace = {NS}",
    "indexes": f"select i.indexrelid from pg_catalog.pg_index i, pg_catalog.pg_class c where c.oid = i.indrelid and "
    f"c.relnamespace = {NS}",
    "index heads": "select t.oid as id, t.relkind, s.relname, i.indexrelid, s.xmin as state, i.indisunique, i.indisprimary, "
    "pg_catalog.pg_get_expr(i.indpred, i.indrelid) as condition, s.reltablespace, can_order from pg_catalog.pg_class t "
    "join pg_catalog.pg_index i on i.indrelid = t.oid join pg_catalog.pg_class s on t.relnamespace = s.relnamespace "
    "and s.oid = i.indexrelid cross join pg_catalog.pg_indexam_has_property(s.relam, 'can_order') can_order "
    f"where t.relnamespace = {NS} and s.relkind in ('i', 'I')",
    "index columns": "select i.indexrelid, k as place, k <= indnkeyatts as in_key, i.indkey[k-1] as c, i.indoption[k-1] as o, "
    "i.indclass[k-1] as class, opcname, case when indexprs is null then null else "
    "pg_catalog.pg_get_indexdef(i.indexrelid, k::int, true) end as expression, can_order from pg_catalog.pg_index i "
    "join pg_catalog.pg_class s on s.oid = i.indexrelid cross join unnest(i.indkey) with ordinality u(c, k) "
    "left join pg_catalog.pg_opclass on pg_opclass.oid = indclass[k-1] "
    "cross join pg_catalog.pg_indexam_has_property(s.relam, 'can_order') can_order "
    f"where s.relnamespace = {NS} and s.relkind in ('i', 'I') order by i.indexrelid, k",
    "constraints": f"select oid from pg_catalog.pg_constraint where conrelid != 0 and connamespace = {NS}",
    "constraints' columns": "select t.oid as id, relkind, c.oid::bigint as con, c.xmin::varchar::bigint as state, conname, "
    "contype, conkey, conindid, confrelid, condeferrable, condeferred, confupdtype, confdeltype, connoinherit, "
    "pg_catalog.pg_get_expr(conbin, t.oid) as expression, confkey, conexclop::int[] as ops "
    f"from pg_catalog.pg_constraint c join pg_catalog.pg_class t on c.conrelid = t.oid where relnamespace = {NS} "
    f"and pg_catalog.age(c.xmin) <= coalesce(nullif(greatest(pg_catalog.age({XID}), -1), -1), 2147483647)",
    "rules": "select r.oid from pg_catalog.pg_rewrite r, pg_catalog.pg_class c where c.oid = r.ev_class and "
    f"c.relnamespace = {NS} and not r.rulename = '_RETURN'",
    "policies": f"select p.oid from pg_catalog.pg_policy p join pg_catalog.pg_class c on polrelid = c.oid "
    f"where relnamespace = {NS}",
    "policies' texts": "select p.oid as id, polname, polrelid, polpermissive, polroles, polcmd, pg_get_expr(polqual, polrelid) "
    "as q, pg_get_expr(polwithcheck, polrelid) as w from pg_catalog.pg_policy p join pg_catalog.pg_class c "
    f"on polrelid = c.oid where relnamespace = {NS} order by polrelid",
    "triggers": f"select t.oid from pg_catalog.pg_trigger t, pg_catalog.pg_class c where c.oid = t.tgrelid and "
    f"c.relnamespace = {NS}",
    "remarked objects": "select s.objoid as id, pg_catalog.array_agg(s.objsubid) as subs from pg_catalog.pg_description s "
    f"join pg_catalog.pg_class c on s.objoid = c.oid where c.relnamespace = {NS} and c.relkind != 'c' and "
    "s.classoid = 'pg_catalog.pg_class'::regclass group by s.objoid",
    "their remarks": "select s.objoid as id, c.relkind::char as kind, s.objsubid, s.description "
    f"from pg_catalog.pg_description s join pg_catalog.pg_class c on s.objoid = c.oid where c.relnamespace = {NS} union all "
    "select t.oid, 'T'::char, s.objsubid, s.description from pg_catalog.pg_description s "
    f"join pg_catalog.pg_type t on t.oid = s.objoid where t.typnamespace = {NS}",
    "rights since": "select c.oid as id, c.relacl as acl from pg_catalog.pg_class c "
    f"where relnamespace = {NS} and pg_catalog.age(c.xmin) <= pg_catalog.age({XID}) union all "
    f"select p.oid, p.proacl from pg_catalog.pg_proc p where pronamespace = {NS} and "
    f"pg_catalog.age(p.xmin) <= pg_catalog.age({XID}) order by id",
    "columns' rights": "select c.oid as id, a.attnum, a.attacl from pg_catalog.pg_attribute a join pg_catalog.pg_class c "
    f"on c.oid = a.attrelid where relnamespace = {NS} and attnum > 0 and pg_catalog.age(a.xmin) <= pg_catalog.age({XID})",
    "sequences' columns": "select d.objid, d.refobjid, d.refobjsubid from pg_depend d join pg_class s on d.objid = s.oid "
    "and d.classid = 'pg_class'::regclass::oid where s.relkind = 'S' and d.refobjsubid <> 0 and d.deptype in ('a', 'i')",
    "views": "select c.relkind, c.oid as id, pg_catalog.pg_get_viewdef(c.oid, true) as source from pg_catalog.pg_class c "
    f"join pg_catalog.pg_namespace n on c.relnamespace = n.oid where n.oid = {NS} and c.relkind in ('m', 'v') and "
    f"(pg_catalog.age(c.xmin) <= coalesce(nullif(greatest(pg_catalog.age({XID}), -1), -1), 2147483647) or exists("
    "select a.attrelid from pg_catalog.pg_attribute a where a.attrelid = c.oid))",
    "functions' texts": "with l as (select oid as lang from pg_catalog.pg_language where lanname in ('c', 'internal')) "
    "select oid as id, pg_catalog.pg_get_function_arguments(oid) as a, pg_catalog.pg_get_function_result(oid) as r, "
    f"pg_catalog.pg_get_function_sqlbody(oid) as b, prosrc from pg_catalog.pg_proc where pronamespace = {NS} and "
    "not (prokind = 'a') and prolang not in (select lang from l)",
}  # fmt: skip


def _named(columns: list[list[Any]]) -> list[list[Any]]:
    """Return the columns' names and types; the length of a `char` is not told in every place."""
    return [column[:2] for column in columns]


def test_there_are_as_many_as_datagrip_has() -> None:
    assert len(SUBJECTS) == 59


def test_they_are_answered_as_by_postgres(catalog: SystemCatalog, postgres: psycopg.Connection[Any]) -> None:
    answered, wrong = set[str](), dict[str, Any]()
    for subject, sql in SUBJECTS.items():
        case = {"client": "datagrip", "sql": sql, "values": []}
        try:
            columns, _ = _ours(catalog, case)
        except CatalogRefusal as refusal:
            wrong[subject] = str(refusal)
            continue
        if subject == "user mappings":  # which Postgres shows to nobody but its owner
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                _theirs(postgres, case)
        elif (shown := _named(columns)) != (expected := _named(_theirs(postgres, case)[0])):
            wrong[subject] = (shown, expected)
            continue
        answered.add(subject)
    assert len(answered) >= LEAST
    assert wrong == {}
